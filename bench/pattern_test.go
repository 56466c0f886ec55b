package bench

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 64, 100, 4096} {
		b := make([]byte, n)
		fill(b, 42, 128)
		at, _ := mismatch(b, 42, 128)
		require.Equal(t, -1, at, "%d bytes", n)
	}
}

func TestPatternIsOneStream(t *testing.T) {
	whole := make([]byte, 1024)
	fill(whole, 7, 0)
	for _, off := range []int{0, 8, 64, 520} {
		part := make([]byte, 100)
		fill(part, 7, uint64(off))
		require.Equal(t, whole[off:off+100], part)
	}
}

func TestPatternCatchesOneByte(t *testing.T) {
	for _, n := range []int{1, 8, 13, 256} {
		for i := range n {
			b := make([]byte, n)
			fill(b, 3, 64)
			want := b[i]
			b[i] ^= 0x10
			at, w := mismatch(b, 3, 64)
			require.Equal(t, i, at)
			require.Equal(t, want, w)
		}
	}
}

func TestRoundKeysDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(4) {
		for cell := range 20 {
			for round := range 20 {
				k := roundKey(seed, cell, round)
				require.False(t, seen[k])
				seen[k] = true
			}
		}
	}
}

func TestPatternsOfTwoKeysShareNoWord(t *testing.T) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	fill(a, roundKey(1, 0, 0), 0)
	fill(b, roundKey(1, 0, 1), 0)
	for i := 0; i < len(a); i += 8 {
		require.False(t, bytes.Equal(a[i:i+8], b[i:i+8]), "word %d", i/8)
	}
}

func TestNonzero(t *testing.T) {
	for _, n := range []int{0, 1, 8, 15, 100} {
		b := make([]byte, n)
		require.Equal(t, -1, nonzero(b))
		for i := range n {
			b[i] = 0x80
			require.Equal(t, i, nonzero(b))
			b[i] = 0
		}
	}
}

func BenchmarkFill(b *testing.B) {
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		fill(buf, 1, 0)
	}
}

func BenchmarkMismatch(b *testing.B) {
	buf := make([]byte, 1<<20)
	fill(buf, 1, 0)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if at, _ := mismatch(buf, 1, 0); at >= 0 {
			b.Fatal(at)
		}
	}
}
