package nic

import (
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// arrivalOf tells how a datagram of n bytes from BTH to ICRC came: its source and
// the 40 bytes that its receive begins with (§1.10). What a socket hides of the
// network header is filled in as a RoCEv2 sender has it; the header's checksum is
// right, since consumers judge by it.
func (r *receiver) arrivalOf(rx *transport.Rx, n int) *qp.Arrival {
	r.from.Src = rx.Src
	ttl := rx.TTL
	if ttl == 0 {
		ttl = defaultTTL
	}
	size := uint16(n + udpLen)
	if rx.Src.Is4() {
		h := roce.IPv4{
			TOS: rx.TOS, TotalLen: size + ipv4Len, ID: rx.ID, Frag: rx.Frag, TTL: ttl, Protocol: protocolUDP, Src: rx.Src, Dst: rx.Dst,
		}
		if !rx.HaveID {
			h.Frag = roce.DontFragment
		}
		clear(r.from.Network[:ipv4At])
		h.Append(r.from.Network[:ipv4At])
		return &r.from
	}
	h := roce.IPv6{TrafficClass: rx.TOS, PayloadLen: size, NextHeader: protocolUDP, HopLimit: ttl, Src: rx.Src, Dst: rx.Dst}
	h.Append(r.from.Network[:0])
	return &r.from
}

const (
	protocolUDP = 17
	udpLen      = 8
	ipv4Len     = 20
	ipv4At      = 20 // bytes 0..19 are zero: consumers tell the families by them
	defaultTTL  = 64 // §1.2
)
