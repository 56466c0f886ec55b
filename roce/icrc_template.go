package roce

import "github.com/gohixl/hixl/roce/internal/crc"

// Template remembers sums of headers, so that of a packet like one before only
// what differs is summed: the PSN, and over IPv4 the identification. A CRC is
// linear, so their shares are found in tables. That pays for packets whose only
// header is the BTH, the great mass of a transfer: the headers of others are
// summed in full. The zero value is ready. One template serves packets from one
// address to another, with any ports and of any queue pairs; for another pair of
// addresses it must be zeroed. It is not safe for concurrent use, and allocates
// nothing.
type Template struct {
	// The packets of long messages, and only few others, come in turns of a middle
	// and a last one, whose opcodes differ in the lowest bit.
	forms [2]form
}

// form is what a sum was made of.
type form struct {
	bth  uint64 // the first eight bytes, masked, so that it is never 0
	rest uint64 // ports, flags and size
	sum  Sum    // of everything before the PSN's word; with identification 0
	ids  uint16 // the bits of an identification that are in the header: over IPv6 none
}

// Begin is [Headers.Begin] of h with the identification id in place of its own,
// for a packet of up to 65507 bytes. All calls have the same addresses in h.
func (t *Template) Begin(h *Headers, id uint16, headers []byte, size int) Sum {
	if len(headers) != BTHLen {
		return h.begin(id, headers, size)
	}
	bth := be.Uint64(headers) | 0xFF<<24 // FECN, BECN and reserved bits
	rest := uint64(h.SrcPort)<<48 | uint64(h.DstPort)<<32 | uint64(h.Frag)<<16 | uint64(uint16(size))
	f := &t.forms[headers[0]&1]
	if f.bth != bth || f.rest != rest {
		*f = form{bth: bth, rest: rest, sum: h.begin(0, headers[:psnAt], size)}
		if h.is4() {
			f.ids = 0xFFFF
		}
	}
	b := headers[psnAt:]
	return Sum(crc.Word(uint32(f.sum^idShare(id&f.ids)), uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
}

// psnAt is where the word of AckReq and PSN stands in the BTH.
const psnAt = 8

// idShare is what an identification other than 0 changes in the sum of everything
// before the PSN's word.
func idShare(id uint16) Sum { return Sum(idShares[0][id>>8] ^ idShares[1][id&0xFF]) }

// idShares are those of the first and of the second byte.
var idShares = makeIDShares()

func makeIDShares() *[2][256]uint32 {
	t := new([2][256]uint32)
	var b [2 + ipv4Len - 6 + udpLen + psnAt]byte
	none := crc.Update(0, b[:])
	for i := range t {
		for v := range 256 {
			b[i] = byte(v)
			t[i][v] = crc.Update(0, b[:]) ^ none
		}
		b[i] = 0
	}
	return t
}
