package coalesce

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/internal/mono"
)

var cfg = Config{Bytes: 64, Count: 8, Delay: time.Millisecond}

func TestStage(t *testing.T) {
	var s Stage
	s.Init(cfg)
	require.Zero(t, s.Deadline())
	buf := make([]byte, 64)
	s.Begin(5, buf)
	require.True(t, s.Empty())
	require.False(t, s.Add("a", 100, []byte("0123")))
	require.False(t, s.Add("a", 104, []byte("45")), "adjacent")
	require.False(t, s.Add("b", 106, []byte("6")), "another target")
	require.False(t, s.Add("a", 106, []byte("7")), "adjacent, but not to the last")
	require.False(t, s.Add("a", 100, []byte("x")), "over an older one")
	require.Equal(t, mono.Time(5).Add(time.Millisecond), s.Deadline())
	require.True(t, s.Fits(55))
	require.False(t, s.Fits(56))
	runs, writes := s.Take()
	require.Equal(t, 5, writes)
	require.Equal(t, []Run{{"a", 100, 0, 6}, {"b", 106, 6, 1}, {"a", 106, 7, 1}, {"a", 100, 8, 1}}, runs)
	require.Equal(t, "01234567x", string(buf[:9]))
	require.True(t, s.Empty())

	s.Begin(6, buf)
	require.True(t, s.Add("a", 0, buf[:64]), "full by bytes")
	s.Begin(7, buf)
	for i := range uint64(7) {
		require.False(t, s.Add("a", i, buf[:1]))
	}
	require.True(t, s.Add("a", 7, buf[:1]), "full by count")
	runs, _ = s.Take()
	require.Len(t, runs, 1)
}

// What the runs write is what the writes would have written, one after the other.
func TestStageIsTransparent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stage
		s.Init(Config{Bytes: 1 << 10, Count: 1 << 10})
		buf := make([]byte, 1<<10)
		s.Begin(0, buf)
		want, got := make([]byte, 64), make([]byte, 64)
		for range rapid.IntRange(0, 40).Draw(t, "writes") {
			at := rapid.IntRange(0, 55).Draw(t, "at")
			b := rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "bytes")
			copy(want[at:], b)
			s.Add(1, uint64(at), b)
		}
		runs, _ := s.Take()
		for _, r := range runs {
			copy(got[r.At:], buf[r.Off:r.Off+r.Len])
		}
		if string(want) != string(got) {
			t.Fatalf("%x instead of %x", got, want)
		}
	})
}
