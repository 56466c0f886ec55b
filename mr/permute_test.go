package mr

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// seeded is a reproducible source of secrets.
func seeded(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func newTestPermutation(tb testing.TB, seed byte) *permutation {
	tb.Helper()
	p, err := newPermutation(seeded(seed))
	require.NoError(tb, err)
	return p
}

func TestPermutationInverts(t *testing.T) {
	p := newTestPermutation(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint32().Draw(t, "x")
		require.Equal(t, x, p.open(p.seal(x)))
		require.Equal(t, x, p.seal(p.open(x)))
	})
}

// The inverse on both sides makes it a bijection; this counts as well, on a
// range of plain numbers as slots and generations use them.
func TestPermutationHitsNothingTwice(t *testing.T) {
	p := newTestPermutation(t, 2)
	seen := make([]uint64, 1<<32/64/8) // keys of one eighth of the range
	n := 0
	for x := range uint32(1 << 22) {
		key := p.seal(x)
		if key>>29 != 0 {
			continue
		}
		require.Zero(t, seen[key/64]>>(key%64)&1, "key %#x", key)
		seen[key/64] |= 1 << (key % 64)
		n++
	}
	require.InDelta(t, 1<<19, n, 1<<13, "keys spread over the range")
}

// Neighbouring numbers give unrelated keys: each bit changes half the time.
func TestPermutationScatters(t *testing.T) {
	p := newTestPermutation(t, 3)
	const samples = 4000
	for bit := range 32 {
		var flips [32]int
		for i := range uint32(samples) {
			x := i * 2654435761
			d := p.seal(x) ^ p.seal(x^1<<bit)
			for out := range flips {
				flips[out] += int(d >> out & 1)
			}
		}
		for out, n := range flips {
			require.InDelta(t, samples/2, n, samples/10, "input bit %d, output bit %d", bit, out)
		}
	}
}

func TestPermutationsDifferBySecret(t *testing.T) {
	a, b := newTestPermutation(t, 4), newTestPermutation(t, 5)
	same := 0
	for x := range uint32(1000) {
		same += bits.OnesCount32(a.seal(x) ^ b.seal(x))
	}
	require.InDelta(t, 16000, same, 800)
}

func TestPermutationNeedsRandomness(t *testing.T) {
	_, err := newPermutation(bytes.NewReader(make([]byte, 10)))
	require.ErrorContains(t, err, "secret")
	_, err = NewTable(Config{Rand: bytes.NewReader(nil)})
	require.Error(t, err)
}

func BenchmarkPermutation(b *testing.B) {
	p := newTestPermutation(b, 6)
	b.ReportAllocs()
	x := uint32(1)
	for b.Loop() {
		x = p.open(x)
	}
}
