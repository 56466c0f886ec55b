package roce

import "net/netip"

// UDP is a UDP header (§1.4).
type UDP struct {
	SrcPort, DstPort uint16
	Len              uint16 // header and payload
	Checksum         uint16 // 0 = none, which RoCEv2 senders use over IPv6 too
}

// Decode fills h from b, the payload of an IP packet, and returns the UDP
// payload, as long as the length field says. A length below 8 or one that
// leaves bytes over is a *[FrameError] with [ErrLength]: the ICRC is computed
// from either length. With [ErrTruncated] for a packet that is cut off, h is
// filled and what there is of the payload is returned beside it. The checksum is
// not checked.
func (h *UDP) Decode(b []byte) ([]byte, error) {
	if len(b) < udpLen {
		return nil, errUDPShort
	}
	*h = UDP{SrcPort: be.Uint16(b), DstPort: be.Uint16(b[2:]), Len: be.Uint16(b[4:]), Checksum: be.Uint16(b[6:])}
	switch n := int(h.Len); {
	case n < udpLen || n < len(b):
		return nil, errUDPLength
	case n > len(b):
		return b[udpLen:], errUDPCut
	}
	return b[udpLen:], nil
}

// Append appends the header as it is; see [UDPChecksum].
func (h *UDP) Append(b []byte) []byte {
	var w [udpLen]byte
	be.PutUint64(w[:], uint64(h.SrcPort)<<48|uint64(h.DstPort)<<32|uint64(h.Len)<<16|uint64(h.Checksum))
	return append(b, w[:]...)
}

// UDPChecksum returns what to put into the checksum field of segment, a UDP
// header and payload between the two addresses; what the field holds counts as
// 0. It is never 0, which would mean that there is none.
func UDPChecksum(src, dst netip.Addr, segment []byte) uint16 {
	s := uint32(protoUDP) + uint32(len(segment))
	a, b := src.As16(), dst.As16()
	if (src.Is4() || src.Is4In6()) && (dst.Is4() || dst.Is4In6()) {
		s = sum(sum(s, a[12:]), b[12:])
	} else {
		s = sum(sum(s, a[:]), b[:])
	}
	s = sum(s, segment)
	if len(segment) >= udpLen {
		s = fold32(s + uint32(^be.Uint16(segment[6:]))) // take the field out again
	}
	if c := fold(s); c != 0 {
		return c
	}
	return 0xFFFF
}

// sum adds b to a ones' complement sum, as big-endian 16-bit words.
func sum(s uint32, b []byte) uint32 {
	for len(b) >= 2 {
		s += uint32(be.Uint16(b))
		s = s&0xFFFF + s>>16
		b = b[2:]
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	return fold32(s)
}

func fold32(s uint32) uint32 {
	s = s&0xFFFF + s>>16
	return s&0xFFFF + s>>16
}

// fold returns the checksum of a sum.
func fold(s uint32) uint16 { return ^uint16(fold32(s)) }
