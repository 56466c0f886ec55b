package roce

import "net/netip"

// IPv6 is an IPv6 header. RoCEv2 puts UDP right after it (§1.3).
type IPv6 struct {
	TrafficClass uint8  // DSCP<<2 | ECN
	FlowLabel    uint32 // 20 bits
	PayloadLen   uint16 // all that follows the header
	NextHeader   uint8
	HopLimit     uint8
	Src, Dst     netip.Addr
}

// Decode fills h from b and returns the bytes after the header, as many as the
// payload length says. What cannot be is a *[FrameError]; with [ErrTruncated] for
// a packet that is cut off, h is filled and what there is of the payload is
// returned beside it. Extension headers are not looked at.
func (h *IPv6) Decode(b []byte) ([]byte, error) {
	if len(b) < ipv6Len {
		return nil, errIPShort
	}
	if b[0]>>4 != 6 {
		return nil, errIPVersion
	}
	v := be.Uint32(b)
	*h = IPv6{
		TrafficClass: uint8(v >> 20),
		FlowLabel:    v & 0xFFFFF,
		PayloadLen:   be.Uint16(b[4:]),
		NextHeader:   b[6],
		HopLimit:     b[7],
		Src:          netip.AddrFrom16([16]byte(b[8:])),
		Dst:          netip.AddrFrom16([16]byte(b[24:])),
	}
	end := ipv6Len + int(h.PayloadLen)
	if end > len(b) {
		return b[ipv6Len:], errIPCut
	}
	return b[ipv6Len:end:end], nil
}

// Append appends the header.
func (h *IPv6) Append(b []byte) []byte {
	var w [ipv6Len]byte
	be.PutUint32(w[:], 6<<28|uint32(h.TrafficClass)<<20|h.FlowLabel&0xFFFFF)
	be.PutUint16(w[4:], h.PayloadLen)
	w[6], w[7] = h.NextHeader, h.HopLimit
	src, dst := h.Src.As16(), h.Dst.As16()
	copy(w[8:], src[:])
	copy(w[24:], dst[:])
	return append(b, w[:]...)
}

// IPv6 extension headers, by protocol number.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extAuth        = 51
	extDestination = 60
	extMobility    = 135
)

// maxExtensions bounds the walk over a chain that a sender made up.
const maxExtensions = 8

// skipExtensions walks from the header next at the start of b to the UDP
// header, if there is one. fragment says whether a fragment header was passed,
// and b is nil when the chain ends in something else or in a later fragment.
func skipExtensions(next uint8, b []byte) (udp []byte, fragment bool) {
	for range maxExtensions {
		if len(b) < 8 {
			return nil, fragment
		}
		n := (int(b[1]) + 1) * 8
		switch next {
		case protoUDP:
			return b, fragment
		case extFragment:
			fragment, n = true, 8
			if be.Uint16(b[2:])>>3 != 0 {
				return nil, true
			}
		case extAuth:
			n = (int(b[1]) + 2) * 4
		case extHopByHop, extRouting, extDestination, extMobility:
		default:
			return nil, fragment
		}
		if n > len(b) {
			return nil, fragment
		}
		next, b = b[0], b[n:]
	}
	return nil, fragment
}
