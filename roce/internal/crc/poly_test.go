package crc

import (
	"hash/crc32"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// polynomial is P without its x^32, bit n being the coefficient of x^n.
const polynomial = 0x04C11DB7

// powerOfX returns x^n mod P, by n multiplications with x.
func powerOfX(n int) uint32 {
	r := uint32(1)
	for range n {
		carry := r >> 31
		r = r<<1 ^ polynomial*carry
	}
	return r
}

func TestPolynomial(t *testing.T) {
	require.Equal(t, uint32(crc32.IEEE), bits.Reverse32(polynomial))
	require.Equal(t, uint32(polynomial), powerOfX(32))
}
