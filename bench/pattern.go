package bench

import (
	"encoding/binary"
	"math/bits"
)

// golden spreads word numbers over 64 bits (2^64 divided by the golden ratio).
const golden = 0x9E3779B97F4A7C15

// mix is the finalizer of splitmix64: a bijection in which every input bit
// moves every output bit, so that two keys or two offsets share no run of bytes.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// roundKey is the pattern's key for one round of one cell. Every round of every
// cell has another one, so that bytes left over from an earlier round are wrong.
func roundKey(seed uint64, cell, round int) uint64 {
	return mix(mix(seed+golden) ^ mix(uint64(cell)<<32|uint64(uint32(round))+1))
}

// word is word number i of the pattern; byte j of the pattern is byte j%8,
// little endian, of word j/8.
func word(key, i uint64) uint64 { return mix(key + i*golden) }

// fill writes the pattern into b; b[0] is byte off of the pattern, off a
// multiple of 8.
func fill(b []byte, key, off uint64) {
	i := off / 8
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, word(key, i))
		b, i = b[8:], i+1
	}
	if len(b) > 0 {
		var tail [8]byte
		binary.LittleEndian.PutUint64(tail[:], word(key, i))
		copy(b, tail[:])
	}
}

// mismatch returns the index of the first byte of b that is not the pattern's
// and the byte that should be there, or -1. b[0] is byte off, a multiple of 8.
func mismatch(b []byte, key, off uint64) (at int, want byte) {
	i := off / 8
	for at = 0; at+8 <= len(b); at, i = at+8, i+1 {
		if d := binary.LittleEndian.Uint64(b[at:]) ^ word(key, i); d != 0 {
			n := bits.TrailingZeros64(d) / 8
			return at + n, byte(word(key, i) >> (8 * n))
		}
	}
	w := word(key, i)
	for ; at < len(b); at, w = at+1, w>>8 {
		if b[at] != byte(w) {
			return at, byte(w)
		}
	}
	return -1, 0
}

// nonzero returns the index of the first byte of b that is not 0, or -1.
func nonzero(b []byte) int {
	at := 0
	for ; at+8 <= len(b); at += 8 {
		if w := binary.LittleEndian.Uint64(b[at:]); w != 0 {
			return at + bits.TrailingZeros64(w)/8
		}
	}
	for ; at < len(b); at++ {
		if b[at] != 0 {
			return at
		}
	}
	return -1
}
