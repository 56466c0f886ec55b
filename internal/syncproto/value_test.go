package syncproto

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

var errTorn = fmt.Errorf("%w: a torn value", errUnsafe)

// both is an actor of a value: a reader or a writer.
type both struct {
	isReader bool
	f        Fetch
	p        Publish
	bad      uint8 // how it is broken
}

const (
	unconfirmed uint8 = iota + 1 // reads without a second look
	inPlace                      // writes to the current slot
	swapsFirst                   // publishes before it writes
	unsettled                    // forgets a swap without result
	unjudged                     // publishes whatever its token
)

func (b *both) Next(now mono.Time) Op {
	if b.isReader {
		return b.f.Next(now)
	}
	if b.bad == inPlace && b.p.phase == valueWriting {
		b.p.slot = SlotOf(b.p.cur)
	}
	return b.p.Next(now)
}

func (b *both) Done(now mono.Time, r Result) {
	if b.isReader {
		b.f.Done(now, r)
		if b.bad == unconfirmed && b.f.phase == valueConfirming {
			b.f.phase = valueIdle
		}
		return
	}
	if b.bad == unjudged && b.p.phase == valueJudging {
		r.Word = 0
	}
	b.p.Done(now, r)
	switch {
	case b.bad != swapsFirst:
	case b.p.phase == valueWriting && !b.p.written:
		b.p.written, b.p.phase = true, valueSwapping
	case b.p.phase == valueIdle && b.p.written:
		b.p.written, b.p.phase = false, valueWriting
	case b.p.phase == valueSwapping && b.p.written && SlotOf(b.p.cur) == b.p.slot:
		b.p.phase = valueIdle
	}
}

func (b *both) Unknown(now mono.Time) {
	if b.isReader {
		b.f.Unknown(now)
		return
	}
	b.p.Unknown(now)
	if b.bad == unsettled && b.p.phase == valueSwapping {
		b.p.doubt, b.p.phase = false, valueIdle
	}
}

// A value of two words behind a token, and two slots of each writer.
var twoWords = ValueConfig{Off: 0, Slots: 8, SlotSize: 24}

// valueModel has actors who read or write as often as they may. Both words of what is
// written are the same number, which is never written again.
func valueModel(commands int, actors ...both) *model[both, *both] {
	x := new(model[both, *both])
	*x = model[both, *both]{
		actors:   actors,
		commands: commands,
		command: func(s *state[both], i int, _ mono.Time) []actor[both] {
			a := s.a[i]
			if a.done >= x.commands {
				return nil
			}
			a.done++
			if a.m.isReader {
				a.m.f.Begin()
			} else {
				n := uint64(10*i + a.done)
				a.buf = [maxBuf]uint64{a.m.p.token, n, n}
				a.m.p.Begin(a.m.p.token, false, 0)
			}
			return []actor[both]{a}
		},
		// ghost[i] is the version that reader i has seen; ghost[5] the greatest token
		// published.
		learned: func(before, s *state[both], i int, _ mono.Time) error {
			a, was := &s.a[i], &before.a[i]
			if !a.m.isReader || a.m.f.phase != valueIdle || was.m.f.phase == valueIdle {
				return nil
			}
			if a.buf[1] != a.buf[2] {
				return errTorn
			}
			if v := a.m.f.Version(); v < s.ghost[i] {
				return fmt.Errorf("%w: an older version after a newer one", errUnsafe)
			}
			s.ghost[i] = a.m.f.Version()
			return nil
		},
		invariant: func(s *state[both]) error {
			if token := s.mem[1+3*SlotOf(s.mem[0])]; token < s.ghost[5] {
				return fmt.Errorf("%w: a lower token after a greater one", errUnsafe)
			} else {
				s.ghost[5] = token
			}
			return nil
		},
	}
	return x
}

func reader(bad uint8) both {
	return both{isReader: true, f: NewFetch(twoWords), bad: bad}
}

func writer(n, token uint64, bad uint8) both {
	b := both{p: NewPublish(twoWords, n), bad: bad}
	b.p.token = token
	return b
}

func TestValueAllInterleavings(t *testing.T) {
	t.Run("a writer and two readers, crash and lost result", func(t *testing.T) {
		x := valueModel(2, writer(0, 0, 0), reader(0))
		x.crashes, x.unknowns = 1, 2
		x.holds(t)
	})
	t.Run("two writers and a reader", func(t *testing.T) {
		x := valueModel(1, writer(0, 1, 0), writer(1, 2, 0), reader(0))
		x.holds(t)
	})
	t.Run("two writers, crash and lost result", func(t *testing.T) {
		x := valueModel(2, writer(0, 1, 0), writer(1, 2, 0))
		x.crashes, x.unknowns = 1, 1
		x.holds(t)
	})
}

func TestCheckerFindsBrokenValues(t *testing.T) {
	t.Run("unconfirmed", func(t *testing.T) { valueModel(3, writer(0, 0, 0), reader(unconfirmed)).breaks(t, errTorn) })
	t.Run("in place", func(t *testing.T) { valueModel(2, writer(0, 0, inPlace), reader(0)).breaks(t, errTorn) })
	t.Run("swaps first", func(t *testing.T) { valueModel(2, writer(0, 0, swapsFirst), reader(0)).breaks(t, errTorn) })
	t.Run("unsettled", func(t *testing.T) {
		x := valueModel(2, writer(0, 0, unsettled), reader(0))
		x.unknowns = 1
		x.breaks(t, errTorn)
	})
	t.Run("unjudged", func(t *testing.T) {
		valueModel(1, writer(0, 1, unjudged), writer(1, 2, 0)).breaks(t, errUnsafe)
	})
}

func TestPublishOnly(t *testing.T) {
	p := NewPublish(twoWords, 1)
	p.Begin(0, true, 4)
	p.Next(0)
	p.Done(0, Result{Word: 5<<slotBits | 1})
	require.True(t, p.Conflict())
	require.EqualValues(t, 5, p.Version())
	p.Begin(7, true, 5)
	p.Next(0)
	p.Done(0, Result{Word: 5<<slotBits | 1})
	require.Equal(t, Op{Kind: Read, Off: 8 + 24, Len: 8, Buf: 24}, p.Next(0))
	p.Done(0, Result{Word: 8})
	p.Next(0)
	p.Done(0, Result{Word: 5<<slotBits | 1})
	require.True(t, p.Fenced())
}
