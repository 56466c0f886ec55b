package devicetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
)

// record notes completions in order.
type record struct {
	tokens []uint64
	errs   []error
}

func (r *record) MemoryDone(token uint64, err error) {
	r.tokens = append(r.tokens, token)
	r.errs = append(r.errs, err)
}

func TestLateIsLateAndOutOfOrder(t *testing.T) {
	l := NewLate(LateConfig{Size: 1000, Seed: 1, MaxDelay: time.Microsecond})
	require.Zero(t, l.Next())
	var r record
	for i := range uint64(50) {
		done, err := l.WriteV([]device.Vec{{Off: i * 10, B: pattern(byte(i+1), 10)}}, i, &r)
		require.False(t, done)
		require.NoError(t, err)
	}
	require.Empty(t, r.tokens)
	require.Equal(t, make([]byte, 1000), l.Snapshot(), "nothing happens before a step")
	require.Equal(t, 50, l.Pending())

	var last mono.Time
	for next := l.Next(); !next.IsZero(); next = l.Next() {
		require.False(t, next.Before(last), "time runs forward")
		last = next
		require.Zero(t, l.Step(next-1), "nothing is due before Next")
		l.Step(next)
	}
	require.Len(t, r.tokens, 50)
	require.False(t, isSorted(r.tokens), "completions come out of order")
	require.Zero(t, l.Pending())
	require.LessOrEqual(t, last, mono.Time(1).Add(2*time.Microsecond), "effect and report each within MaxDelay")
}

func isSorted(s []uint64) bool {
	for i := 1; i < len(s); i++ {
		if s[i] < s[i-1] {
			return false
		}
	}
	return true
}

func TestLateReplaysFromItsSeed(t *testing.T) {
	run := func(seed uint64) []uint64 {
		l := NewLate(LateConfig{Size: 64, Seed: seed})
		var r record
		for i := range uint64(20) {
			_, _ = l.WriteV([]device.Vec{{Off: i, B: []byte{1, 2}}}, i, &r)
		}
		require.Equal(t, 20, l.Drain())
		return r.tokens
	}
	require.Equal(t, run(3), run(3))
	require.NotEqual(t, run(3), run(4))
}

func TestLateInjectsErrors(t *testing.T) {
	l := NewLate(LateConfig{Size: 64, Seed: 1, ErrorRate: 0.5, Prompt: 0.3})
	var r record
	failed := 0
	for i := range uint64(100) {
		if done, err := l.WriteV([]device.Vec{{B: []byte{1}}}, i, &r); done {
			r.MemoryDone(i, err)
		}
	}
	l.Drain()
	require.Len(t, r.errs, 100)
	for _, err := range r.errs {
		if err != nil {
			require.ErrorIs(t, err, ErrInjected)
			failed++
		}
	}
	require.InDelta(t, 50, failed, 20)
}

func TestLateBuffersHoldGarbageUntilDone(t *testing.T) {
	l := NewLate(LateConfig{Size: 64, Seed: 1})
	b := make([]byte, 8)
	var r record
	_, _ = l.ReadV([]device.Vec{{B: b}}, 1, &r)
	require.NotEqual(t, make([]byte, 8), b)
	l.Drain()
	require.Equal(t, make([]byte, 8), b)
}

// chain starts a new operation from a completion.
type chain struct {
	l    *Late
	left int
}

func (c *chain) MemoryDone(uint64, error) {
	if c.left--; c.left > 0 {
		_, _ = c.l.WriteV([]device.Vec{{B: []byte{1}}}, 0, c)
	}
}

func TestLateMayBeUsedFromCompleters(t *testing.T) {
	l := NewLate(LateConfig{Size: 8, Seed: 1})
	c := &chain{l: l, left: 5}
	_, _ = l.WriteV(nil, 0, c)
	require.Equal(t, 5, l.Step(1<<40), "follow-ups that are due happen in the same step")
	require.Zero(t, c.left)
}

func TestLateOverlapRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLate(LateConfig{
			Size: window, Seed: rapid.Uint64().Draw(t, "seed"),
			MaxDelay: time.Duration(rapid.IntRange(1, 100).Draw(t, "delay")),
			Prompt:   rapid.Float64Range(0, 1).Draw(t, "prompt"),
		})
		require.NoError(t, checkOneOrder(l, true, rapid.Uint64().Draw(t, "operations")))
	})
}
