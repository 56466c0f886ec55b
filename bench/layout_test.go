package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// deliver copies messages of a lane as a perfect transfer would, except those
// that lose names.
func deliver(l *layout, dst, src []byte, lane int, from, to uint64, lose func(uint64) bool) {
	w := l.walk(lane)
	for n := uint64(0); n < to; n++ {
		d, s := w.next()
		if n >= from && !lose(n) {
			copy(dst[d:d+l.size], src[s:s+l.size])
		}
	}
}

func none(uint64) bool { return false }

func TestLayoutVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 300).Draw(t, "size")
		lanes := rapid.IntRange(1, 3).Draw(t, "lanes")
		region := rapid.IntRange(lanes*320, 8192).Draw(t, "region")
		l, err := newLayout(region, size, lanes)
		require.NoError(t, err)
		src, dst := make([]byte, region+slack), make([]byte, region)
		fill(src, 9, 0)
		spans := make([]span, lanes)
		for lane := range spans {
			from := rapid.Uint64Range(0, 200).Draw(t, "from")
			spans[lane] = span{from, from + rapid.Uint64Range(0, 3*uint64(l.slots)).Draw(t, "count")}
			deliver(&l, dst, src, lane, spans[lane].From, spans[lane].To, none)
		}
		require.NoError(t, l.verify(dst, 9, spans))
		require.Equal(t, l.src(0, 0, 3), l.dst(0, 0)+3*slotAlign)

		// Any byte that differs, in a message or outside, is found where it is.
		i := rapid.IntRange(0, region-1).Draw(t, "flip")
		dst[i] ^= 1
		var m *MismatchError
		require.ErrorAs(t, l.verify(dst, 9, spans), &m)
		require.Equal(t, i, m.Offset)
		require.Equal(t, m.Want^1, m.Got)
	})
}

func TestLayoutCatchesTheLapBefore(t *testing.T) {
	l, err := newLayout(1024, 64, 1)
	require.NoError(t, err)
	require.Equal(t, 16, l.slots)
	src, dst := make([]byte, 1024+slack), make([]byte, 1024)
	fill(src, 1, 0)
	// 40 messages are two laps and a half; number 20 is the last in its slot
	// but one, number 36 the last in slot 4.
	deliver(&l, dst, src, 0, 0, 40, func(n uint64) bool { return n == 20 })
	require.NoError(t, l.verify(dst, 1, []span{{0, 40}}), "overwritten by 36")
	deliver(&l, dst, src, 0, 0, 40, func(n uint64) bool { return n == 36 })
	err = l.verify(dst, 1, []span{{0, 40}})
	var m *MismatchError
	require.ErrorAs(t, err, &m)
	require.True(t, m.Stale)
	require.Equal(t, 4*64, m.Offset)
	require.ErrorContains(t, err, "lap before")
}

func TestLayoutCatchesTheRoundBefore(t *testing.T) {
	l, err := newLayout(1024, 64, 1)
	require.NoError(t, err)
	src, dst := make([]byte, 1024+slack), make([]byte, 1024)
	fill(src, roundKey(1, 1, 0), 0)
	deliver(&l, dst, src, 0, 0, 16, none)
	require.NoError(t, l.verify(dst, roundKey(1, 1, 0), []span{{0, 16}}))
	require.ErrorIs(t, l.verify(dst, roundKey(1, 1, 1), []span{{0, 16}}), ErrVerify)
	require.ErrorIs(t, l.verify(dst, roundKey(1, 1, 0), []span{{16, 16}}), ErrVerify, "nothing was sent, so nothing may be there")
}

func TestWalkerAgreesWithLayout(t *testing.T) {
	l, err := newLayout(4096, 100, 2)
	require.NoError(t, err)
	w := l.walk(1)
	for n := uint64(0); n < 5000; n++ {
		dst, src := w.next()
		slot := int(n % uint64(l.slots))
		require.Equal(t, l.dst(1, slot), dst)
		require.Equal(t, l.src(1, slot, n/uint64(l.slots)), src)
	}
}

func TestLayoutRefusesASmallRegion(t *testing.T) {
	_, err := newLayout(4096, 4096, 2)
	require.ErrorIs(t, err, ErrFlag)
	require.EqualError(t, err, "--region 4KiB: allowed: at least 8KiB for 2 queue pairs of 4KiB messages; raise --region, or lower --size or --qps")
}
