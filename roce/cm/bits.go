package cm

// The fields of CM messages begin at any bit. get24 reads three bytes; the
// others say with their masks where they are.

func get24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// put24 writes the low 24 bits of v.
func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

// get20 reads the upper 20 bits of three bytes.
func get20(b []byte) uint32 { return get24(b) >> 4 }

// or20 sets the upper 20 bits of three bytes, which must be zero.
func or20(b []byte, v uint32) {
	v = v << 4 & 0xFFFFF0
	b[0] |= byte(v >> 16)
	b[1] |= byte(v >> 8)
	b[2] |= byte(v)
}

// bit returns v if on.
func bit(on bool, v byte) byte {
	if on {
		return v
	}
	return 0
}
