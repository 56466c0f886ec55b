package wr

import "github.com/gohixl/hixl/roce"

// Epoch is added to every sequence number, so that the duplicates of a
// connection's first packets do not reach below zero.
const Epoch = 1 << 32

// Sequence returns the sequence number a connection starts with at PSN p.
func Sequence(p roce.PSN) uint64 { return Epoch + uint64(p&0xFFFFFF) }

// Wire is the 24 bits of a sequence number that a packet carries.
func Wire(seq uint64) roce.PSN { return roce.PSN(seq & 0xFFFFFF) }

// Extend returns the signed distance from ref of the sequence number with the
// wire value p that lies nearest to it (§0).
func Extend(ref uint64, p roce.PSN) int64 { return int64(p.Sub(Wire(ref))) }

// Packets is the number of packets a message of n bytes takes (§3.2).
func Packets(n, mtu uint64) uint32 {
	if n == 0 {
		return 1
	}
	return uint32((n + mtu - 1) / mtu)
}
