package roce

import (
	"encoding/binary"

	"github.com/gohixl/hixl/roce/internal/crc"
)

// Sum is the ICRC of a packet in the making, for those who copy its payload
// anyway: the bytes are summed as they are copied. It begins with
// [Headers.Begin] and takes the packet's bytes after the headers in order.
type Sum uint32

// Begin returns the sum of a packet of size bytes, BTH to ICRC, after its BTH and
// extension headers, which headers holds and which must be there whole.
func (h *Headers) Begin(headers []byte, size int) Sum { return h.begin(h.ID, headers, size) }

// begin is Begin with another identification, also of the front of the headers, of
// five bytes or more.
func (h *Headers) begin(id uint16, headers []byte, size int) Sum {
	var prefix [prefixMax + MaxHeaderLen - BTHLen]byte
	n := h.putPrefix(prefix[:], id, size)
	end := n + copy(prefix[n:], headers)
	prefix[n+4] = 0xFF // FECN, BECN and reserved bits
	return Sum(crc.UpdateShort(icrcInit, prefix[:end]))
}

// Add takes bytes of the packet.
func (s Sum) Add(b []byte) Sum { return Sum(crc.Update(uint32(s), b)) }

// Copy takes bytes of the packet and copies them to the start of dst, as
// [CopyCRC] does.
func (s Sum) Copy(dst, src []byte) Sum { return Sum(crc.Copy(dst, src, uint32(s))) }

// Seal writes the sum, which has taken everything before them, into the last four
// bytes of a packet.
func (s Sum) Seal(icrc []byte) { binary.LittleEndian.PutUint32(icrc, uint32(s)) }

// Equals compares the sum with the ICRC of its packet, all 32 bits of it.
func (s Sum) Equals(icrc []byte) bool { return binary.LittleEndian.Uint32(icrc) == uint32(s) }

// Matches compares the sum with the ICRC of a packet of size bytes that began with
// h, under the rules of [Headers.CheckAnyID].
func (s Sum) Matches(h *Headers, icrc []byte, size int, maxID uint16) (id uint16, ok bool) {
	return h.explain(binary.LittleEndian.Uint32(icrc)^uint32(s), size, maxID)
}
