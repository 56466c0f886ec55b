package tap

import (
	"encoding/binary"
	"time"
)

// Blocks and options of the pcapng format (draft-ietf-opsawg-pcapng), written in
// little endian, which the section header tells the reader.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6 // enhanced packet block
	byteOrderMagic = 0x1a2b3c4d

	optEnd      = 0
	optUserAppl = 4 // section: the program
	optIfName   = 2 // interface: its name
	optTSResol  = 9 // interface: 10^-n seconds a tick
	optFlags    = 2 // packet: the direction, in the low two bits

	linkEthernet = 1
	nanoseconds  = 9

	inbound  = 1
	outbound = 2
)

var le = binary.LittleEndian

// appendHeader appends the section and its one interface.
func appendHeader(b []byte, name string, snaplen int) []byte {
	b, start := beginBlock(b, blockSection)
	b = le.AppendUint32(b, byteOrderMagic)
	b = le.AppendUint16(b, 1) // version 1.0
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, ^uint64(0)) // section length unknown
	b = appendOption(b, optUserAppl, []byte("hixl"))
	b = appendOption(b, optEnd, nil)
	b = endBlock(b, start)

	b, start = beginBlock(b, blockInterface)
	b = le.AppendUint16(b, linkEthernet)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, uint32(snaplen))
	b = appendOption(b, optIfName, []byte(name))
	b = appendOption(b, optTSResol, []byte{nanoseconds})
	b = appendOption(b, optEnd, nil)
	return endBlock(b, start)
}

// beginPacket appends a packet block up to its data; frameLen is the length on
// the wire.
func beginPacket(b []byte, at time.Time, frameLen, snaplen int) ([]byte, int) {
	b, start := beginBlock(b, blockPacket)
	ns := uint64(at.UnixNano())
	b = le.AppendUint32(b, 0) // interface
	b = le.AppendUint32(b, uint32(ns>>32))
	b = le.AppendUint32(b, uint32(ns))
	b = le.AppendUint32(b, uint32(min(frameLen, snaplen)))
	return le.AppendUint32(b, uint32(frameLen)), start
}

// endPacket appends padding, direction and the end of a packet block.
func endPacket(b []byte, start int, direction uint32) []byte {
	b = pad(b)
	b = le.AppendUint16(b, optFlags)
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, direction)
	b = appendOption(b, optEnd, nil)
	return endBlock(b, start)
}

func beginBlock(b []byte, kind uint32) ([]byte, int) {
	start := len(b)
	b = le.AppendUint32(b, kind)
	return le.AppendUint32(b, 0), start // the length, when it is known
}

// endBlock writes the block's length at both its ends.
func endBlock(b []byte, start int) []byte {
	n := uint32(len(b) - start + 4)
	le.PutUint32(b[start+4:], n)
	return le.AppendUint32(b, n)
}

func appendOption(b []byte, code uint16, value []byte) []byte {
	b = le.AppendUint16(b, code)
	b = le.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...))
}

// pad fills up to a multiple of four. Every block starts at one.
func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
