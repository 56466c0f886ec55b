package mr

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// rounds of the Feistel network. Four give a strong permutation from ideal round
// functions (Luby and Rackoff, 1988); six leave room for ours being less.
const rounds = 6

// permutation is a secret bijection of the 32-bit numbers: a Feistel network
// over two halves of 16 bits.
type permutation struct {
	secret [rounds][4]uint64
}

// newPermutation draws the secret from r.
func newPermutation(r io.Reader) (*permutation, error) {
	p := new(permutation)
	if err := binary.Read(r, binary.LittleEndian, &p.secret); err != nil {
		return nil, fmt.Errorf("mr: reading a secret for keys: %w", err)
	}
	return p, nil
}

// mix folds the 128-bit product of two words into one.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// round is the keyed function of one half. It need not be invertible.
func round(s *[4]uint64, half uint32) uint32 {
	h := mix(uint64(half)^s[0], s[1])
	h = mix(h^s[2], s[3])
	return uint32(h>>32) & 0xffff
}

// seal maps a plain number to a key.
func (p *permutation) seal(x uint32) uint32 {
	l, r := x>>16, x&0xffff
	for i := range p.secret {
		l, r = r, l^round(&p.secret[i], r)
	}
	return l<<16 | r
}

// open is the inverse of seal.
func (p *permutation) open(x uint32) uint32 {
	l, r := x>>16, x&0xffff
	for i := rounds - 1; i >= 0; i-- {
		l, r = r^round(&p.secret[i], l), l
	}
	return l<<16 | r
}
