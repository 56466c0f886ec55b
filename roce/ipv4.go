package roce

import "net/netip"

// IPv4 is an IPv4 header without options, the only kind RoCEv2 has (§1.2).
type IPv4 struct {
	TOS      uint8  // DSCP<<2 | ECN
	TotalLen uint16 // header and all that follows
	ID       uint16
	Frag     uint16 // flags and fragment offset, [DontFragment] on RoCEv2 packets
	TTL      uint8
	Protocol uint8
	Checksum uint16 // as received; Append computes it
	Src, Dst netip.Addr
}

const (
	fragMore   = 0x2000
	fragOffset = 0x1FFF
)

// IsFragment reports whether the packet is a piece of a larger one.
func (h *IPv4) IsFragment() bool { return h.Frag&(fragMore|fragOffset) != 0 }

// Decode fills h from b and returns the bytes after the header, as many as the
// total length says. Options and lengths that cannot be are a *[FrameError]; with
// [ErrTruncated] for a packet that is cut off, h is filled and what there is of
// the payload is returned beside it. Fragments are not refused.
func (h *IPv4) Decode(b []byte) ([]byte, error) {
	if len(b) < ipv4Len {
		return nil, errIPShort
	}
	switch {
	case b[0]>>4 != 4:
		return nil, errIPVersion
	case b[0]&0xF < 5:
		return nil, errIPLength
	}
	*h = IPv4{
		TOS:      b[1],
		TotalLen: be.Uint16(b[2:]),
		ID:       be.Uint16(b[4:]),
		Frag:     be.Uint16(b[6:]),
		TTL:      b[8],
		Protocol: b[9],
		Checksum: be.Uint16(b[10:]),
		Src:      netip.AddrFrom4([4]byte(b[12:])),
		Dst:      netip.AddrFrom4([4]byte(b[16:])),
	}
	n := int(h.TotalLen)
	switch {
	case b[0]&0xF != 5:
		return nil, errIPv4Options
	case n < ipv4Len:
		return nil, errIPLength
	case n > len(b):
		return b[ipv4Len:], errIPCut
	}
	return b[ipv4Len:n:n], nil
}

// Append appends the header with its right checksum; h.Checksum is not used.
// Src and Dst must be IPv4 or IPv4-mapped.
func (h *IPv4) Append(b []byte) []byte {
	var w [ipv4Len]byte
	h.put(&w)
	be.PutUint16(w[10:], fold(sum(0, w[:])))
	return append(b, w[:]...)
}

// ChecksumOK reports whether the checksum that was received is right.
func (h *IPv4) ChecksumOK() bool {
	var w [ipv4Len]byte
	h.put(&w)
	be.PutUint16(w[10:], h.Checksum)
	return fold(sum(0, w[:])) == 0
}

func (h *IPv4) put(w *[ipv4Len]byte) {
	w[0], w[1] = 0x45, h.TOS
	be.PutUint16(w[2:], h.TotalLen)
	be.PutUint16(w[4:], h.ID)
	be.PutUint16(w[6:], h.Frag)
	w[8], w[9] = h.TTL, h.Protocol
	src, dst := h.Src.As4(), h.Dst.As4()
	copy(w[12:], src[:])
	copy(w[16:], dst[:])
}
