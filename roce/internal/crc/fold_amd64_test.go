//go:build !noasm

package crc

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFoldTable derives the constants of the kernels from the polynomial, by
// the slowest ways there are.
func TestFoldTable(t *testing.T) {
	k := func(n int) uint64 { return uint64(bits.Reverse32(powerOfX(n))) }
	for i, w := range crcFold.weights {
		require.Equal(t, k(64*(31-i)+31), w, "weight %d", i)
	}
	require.Equal(t, [2]uint64{k(2048 + 64 - 33), k(2048 - 33)}, crcFold.loop)
	require.Equal(t, [2]uint64{k(512 + 64 - 33), k(512 - 33)}, [2]uint64(crcFold.weights[23:25]))
	require.Equal(t, [2]uint64{
		bits.Reverse64(quotientOfX95()),
		bits.Reverse64(1<<32|polynomial) >> 31,
	}, crcFold.barrett)
}

// quotientOfX95 returns floor(x^95/P) by long division.
func quotientOfX95() (q uint64) {
	rest := uint64(1) << 63 // the upper bits of x^95; what follows is zeros
	for bit := 63; bit >= 0; bit-- {
		top := rest >> 63
		q |= top << bit
		rest ^= top * ((1<<32 | polynomial) << 31)
		rest <<= 1
	}
	return q
}

func TestShiftTables(t *testing.T) {
	for h := 1; h < 64; h++ {
		for j := 64 - h; j < 64; j++ { // the mask of VPERMB leaves the others out
			require.Equal(t, j-(64-h), int(shiftUp64[h+j]&63), "%d bytes of 64", h)
		}
	}
	for h := 1; h < 16; h++ {
		for j := range 16 {
			want := j - (16 - h)
			if want < 0 {
				want = 0x80 // PSHUFB makes it zero
			}
			require.Equal(t, want, int(shiftUp16[h+j]), "%d bytes of 16", h)
		}
	}
}
