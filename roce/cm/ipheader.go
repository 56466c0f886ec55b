package cm

import "net/netip"

// IPHeaderLen is the length of an [IPHeader] in bytes.
const IPHeaderLen = 36

// IPHeader is what RDMA CM puts in front of the private data of REQ and SIDR_REQ
// (§5.5). The destination port is in the service id.
type IPHeader struct {
	SrcPort  uint16
	Src, Dst netip.Addr // of the same family
}

// Decode fills h from the first bytes of private data. Fewer than [IPHeaderLen]
// bytes, a version other than 0 or an IP version other than 4 and 6 are a
// *[DecodeError].
func (h *IPHeader) Decode(b []byte) error {
	if len(b) < IPHeaderLen {
		return &DecodeError{Reason: ErrLength, Got: len(b), Want: IPHeaderLen}
	}
	if b[0] != 0 {
		return &DecodeError{Reason: ErrVersion, Got: int(b[0])}
	}
	h.SrcPort = be.Uint16(b[2:])
	switch b[1] >> 4 {
	case 4:
		h.Src, h.Dst = netip.AddrFrom4([4]byte(b[16:])), netip.AddrFrom4([4]byte(b[32:]))
	case 6:
		h.Src, h.Dst = netip.AddrFrom16([16]byte(b[4:])), netip.AddrFrom16([16]byte(b[20:]))
	default:
		return &DecodeError{Reason: ErrVersion, Got: int(b[1] >> 4)}
	}
	return nil
}

// Append appends [IPHeaderLen] bytes. Src decides about the IP version; zones are
// left out.
func (h *IPHeader) Append(to []byte) []byte {
	var b [IPHeaderLen]byte
	be.PutUint16(b[2:], h.SrcPort)
	if src, dst := h.Src.Unmap(), h.Dst.Unmap(); src.Is4() && dst.Is4() {
		b[1] = 4 << 4
		s, d := src.As4(), dst.As4()
		copy(b[16:], s[:])
		copy(b[32:], d[:])
	} else {
		b[1] = 6 << 4
		s, d := GIDOf(h.Src), GIDOf(h.Dst)
		copy(b[4:], s[:])
		copy(b[20:], d[:])
	}
	return append(to, b[:]...)
}
