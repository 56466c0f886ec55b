package roce

// CheckAnyID checks a packet whose IPv4 identification is not known, as a UDP
// socket hides it. It tries h.ID, then solves for the identification that
// explains the ICRC: a CRC is linear, so the difference between the ICRC found
// and the one expected depends only on the identification's difference and its
// distance from the end (§1.5). ok is true when the ICRC is right with id, and
// id is no larger than maxID; h.Frag must be right, [DontFragment] as a rule.
// With maxID 0xFFFF about 16 bits of check remain, with 127 about 25. Over IPv6
// nothing is hidden: id is 0, all 32 bits are checked and maxID is ignored.
func (h *Headers) CheckAnyID(pkt []byte, maxID uint16) (id uint16, ok bool) {
	if len(pkt) < minPacket || len(pkt) > maxUDPPayload {
		return 0, false
	}
	return h.explain(h.diff(pkt), len(pkt), maxID)
}

// explain finds the identification that explains the difference d between the
// ICRC of a packet of size bytes and the one that h.ID gives.
func (h *Headers) explain(d uint32, size int, maxID uint16) (id uint16, ok bool) {
	if !h.is4() {
		return 0, d == 0
	}
	id = h.ID
	if d != 0 {
		// Undo the bytes after the identification and its own two. What is left
		// is the two bytes' difference itself, first byte lowest, or no
		// identification explains it.
		d = gfMul(d, unshift(uint16(2+ipv4Len-6+udpLen+size-ICRCLen)))
		if d > 0xFFFF {
			return 0, false
		}
		id ^= uint16(d)<<8 | uint16(d)>>8
	}
	if id > maxID {
		return 0, false
	}
	return id, true
}

// Polynomials over GF(2) modulo that of CRC-32, in its reflected form: bit 31 is
// the coefficient of x^0.
const (
	gfPoly = 0xEDB88320
	gfOne  = 1 << 31
	// x has order 2^32-1, so its inverse is x^(2^32-2).
	gfOrder = 1<<32 - 1
)

// unshift returns x^(-8n): what undoes the effect of n bytes on the register.
func unshift(n uint16) uint32 {
	lo := unshiftLow[n&0xFF]
	if n < 256 {
		return lo
	}
	return gfMul(lo, unshiftHigh[n>>8])
}

// unshiftLow[i] is x^(-8i), unshiftHigh[i] is x^(-8·256·i).
var unshiftLow, unshiftHigh = makeUnshift()

func makeUnshift() (low, high *[256]uint32) {
	low, high = new([256]uint32), new([256]uint32)
	byteInverse := gfPow(gfOne>>1, gfOrder-8)
	blockInverse := gfPow(byteInverse, 256)
	low[0], high[0] = gfOne, gfOne
	for i := 1; i < 256; i++ {
		low[i] = gfMul(low[i-1], byteInverse)
		high[i] = gfMul(high[i-1], blockInverse)
	}
	return low, high
}

func gfPow(a uint32, n uint64) uint32 {
	r := uint32(gfOne)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			r = gfMul(r, a)
		}
		a = gfMul(a, a)
	}
	return r
}

// gfMul multiplies a by b, four bits of a at a time.
func gfMul(a, b uint32) uint32 {
	bx := gfShift(b)
	bx2 := gfShift(bx)
	bx3 := gfShift(bx2)
	// In the reflected form bit 3 of a nibble is its x^0.
	t := [16]uint32{
		0, bx3, bx2, bx2 ^ bx3, bx, bx ^ bx3, bx ^ bx2, bx ^ bx2 ^ bx3,
		b, b ^ bx3, b ^ bx2, b ^ bx2 ^ bx3, b ^ bx, b ^ bx ^ bx3, b ^ bx ^ bx2, b ^ bx ^ bx2 ^ bx3,
	}
	var r uint32
	for range 8 { // Horner, from the highest power
		r = r>>4 ^ gfReduce4[r&0xF]
		r ^= t[a&0xF]
		a >>= 4
	}
	return r
}

// gfShift multiplies by x.
func gfShift(a uint32) uint32 { return a>>1 ^ gfPoly&-(a&1) }

// gfReduce4[i] is what the four bits i shifted out by a multiplication with x^4 come back as.
var gfReduce4 = func() (t [16]uint32) {
	for i := range t {
		r := uint32(i)
		for range 4 {
			r = gfShift(r)
		}
		t[i] = r
	}
	return t
}()
