package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// A search finds what a look at all ranges finds.
func TestSpansAgainstAllRanges(t *testing.T) {
	for seed := range uint64(50) {
		g := rand.New(rand.NewPCG(seed, 1))
		var s spans[int]
		for step := range 300 {
			if g.IntN(3) > 0 {
				s.put(step, span{uint64(g.IntN(200) + 1), uint64(g.IntN(60) + 1)})
			} else {
				s.remove(g.IntN(step + 1))
			}
			addr, n := uint64(g.IntN(260)), uint64(g.IntN(40)+1)
			want := false
			for _, x := range s.all {
				want = want || x.addr <= addr && addr+n <= x.addr+x.n
			}
			k, off, ok := s.find(addr, n)
			require.Equal(t, want, ok)
			if ok {
				x := s.all[k]
				require.Equal(t, addr, x.addr+off)
				require.LessOrEqual(t, off+n, x.n)
			}
		}
	}
	var s spans[int]
	s.put(1, span{^uint64(0) - 10, 10})
	_, _, ok := s.find(^uint64(0)-5, 100)
	require.False(t, ok, "a range that wraps is nowhere")
	_, _, ok = s.find(^uint64(0)-5, 5)
	require.True(t, ok)
}

// Entries are read as they were written, and nothing else is.
func FuzzDirectory(f *testing.F) {
	good := make([]byte, 2*dirEntry)
	(&entry{entryAdded, 1, span{4096, 64}}).encode(good)
	(&entry{entryRemoved, 1, span{4096, 64}}).encode(good[dirEntry:])
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		v := newView()
		if err := v.apply(b); err != nil {
			return
		}
		require.LessOrEqual(t, len(v.spans.all), len(b)/dirEntry)
		for id, x := range v.spans.all {
			k, off, ok := v.spans.find(x.addr, x.n)
			require.True(t, ok)
			require.LessOrEqual(t, off+x.n, v.spans.all[k].n)
			out := make([]byte, dirEntry)
			(&entry{entryAdded, id, x}).encode(out)
			again, err := decodeEntry(out)
			require.NoError(t, err)
			require.Equal(t, x, again.span)
		}
	})
}

// The waterlines are parts of the links that there may be.
func TestWaterlines(t *testing.T) {
	for text, want := range map[string][2]int{
		`{}`: {0, 0},
		`{"channel_pool": {"max_channel": 4, "high_waterline": 0.5, "low_waterline": 0.25}}`: {2, 1},
		`{"channel_pool": {"high_waterline": 1}}`:                                            {512, hixl.None},
	} {
		o, err := ParseOptions(map[string]string{OptionGlobalResourceConfig: text}, nil)
		require.NoError(t, err)
		cfg := o.peers()
		require.Equal(t, want, [2]int{cfg.HighWater, cfg.LowWater}, text)
	}
}
