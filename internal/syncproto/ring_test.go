package syncproto

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

var errRecord = fmt.Errorf("%w: a record that is torn, out of order, or not there yet", errUnsafe)

// A ring of two records of two words each.
var twoSlots = RingConfig{Off: 0, Slots: 16, SlotSize: 16, Count: 2, Batch: 1, MinPause: 1, MaxPause: 1}

// ringEnd is an actor of a ring: a producer or a consumer.
type ringEnd struct {
	isConsumer bool
	opened     bool
	second     bool // takes over when the first has died
	p          Produce
	c          Consume
	bad        uint8
}

const (
	ringAhead       uint8 = iota + 1 // tells of a record before it is written
	ringGreedy                       // writes whether there is room or not
	ringLavish                       // gives slots back before it has read them
	ringUnconfirmed                  // takes what it has read without a second look
	ringForgetful                    // forgets a swap without result
)

func (r *ringEnd) end() *end {
	if r.isConsumer {
		return &r.c.end
	}
	return &r.p.end
}

func (r *ringEnd) Next(now mono.Time) Op {
	if r.isConsumer {
		return r.c.Next(now)
	}
	return r.p.Next(now)
}

func (r *ringEnd) Done(now mono.Time, x Result) {
	e := r.end()
	switch was := e.phase; {
	case r.bad == ringAhead && was == ringSwapping:
		if r.p.Done(now, x); r.p.phase == ringIdle {
			r.p.phase = ringMoving
			r.p.word = withCount(r.p.word, CountOf(r.p.word)-1)
		}
	case r.bad == ringAhead && was == ringMoving:
		r.p.word, r.p.phase = withCount(r.p.word, CountOf(r.p.word)+1), ringIdle
	case r.isConsumer:
		if r.c.Done(now, x); r.bad == ringUnconfirmed && r.c.phase == ringConfirming {
			r.c.read, r.c.phase = r.c.read+1, ringIdle
		}
		if r.bad == ringLavish && r.c.phase == ringMoving && was == ringLooking {
			r.c.swap(withCount(r.c.word, r.c.read+1))
		}
	default:
		r.p.Done(now, x)
	}
	if r.bad == ringGreedy && r.p.phase == ringLooking && r.opened {
		r.p.phase = ringMoving
	}
}

func (r *ringEnd) Unknown(now mono.Time) {
	e := r.end()
	e.Unknown(now)
	if r.bad == ringForgetful && e.phase == ringSwapping {
		e.phase, e.doubt = ringIdle, false
	}
}

// put has a producer put a record in: both words are its number, and which attempt it is.
func (r *ringEnd) put(buf *[maxBuf]uint64, attempt int) {
	r.p.Begin()
	if r.bad == ringAhead && r.p.phase == ringMoving {
		r.p.swap(withCount(r.p.word, CountOf(r.p.word)+1))
	}
	n := r.p.Seq() + 100*uint64(attempt)
	*buf = [maxBuf]uint64{n, n}
}

// ringModel has ends that put in and take out as often as they may.
func ringModel(commands int, actors ...ringEnd) *model[ringEnd, *ringEnd] {
	x := new(model[ringEnd, *ringEnd])
	*x = model[ringEnd, *ringEnd]{
		actors:   actors,
		commands: commands,
		until:    2,
		command: func(s *state[ringEnd], i int, _ mono.Time) []actor[ringEnd] {
			a := s.a[i]
			first := &s.a[0]
			switch e := a.m.end(); {
			case e.Fenced() || e.Strange():
				return nil
			case !a.m.opened && a.m.second && !a.m.isConsumer && (!first.dead || first.late && first.lateOp.Kind == Write):
				return nil // what the home has heard of its writes, it has heard
			case !a.m.opened:
				a.m.opened = true
				e.Open()
				return []actor[ringEnd]{a}
			case a.done >= x.commands:
				return nil
			}
			a.done++
			if a.m.isConsumer {
				a.m.c.Begin()
			} else {
				a.m.put(&a.buf, a.done)
			}
			return []actor[ringEnd]{a}
		},
		learned: func(before, s *state[ringEnd], i int, _ mono.Time) error {
			a, was := &s.a[i], &before.a[i]
			if a.m.end().Strange() {
				return fmt.Errorf("%w: a strange word", errUnsafe)
			}
			if !a.m.isConsumer || a.m.c.phase != ringIdle || was.m.c.phase == ringFinding || was.m.c.phase == ringClaiming {
				return nil
			}
			if n := a.buf[0]; n != a.buf[1] || n == 0 || n%100 != a.m.c.Seq() {
				return errRecord
			}
			return nil
		},
	}
	return x
}

func producer(bad uint8) ringEnd { return ringEnd{p: NewProduce(twoSlots), bad: bad} }

func consumer(bad uint8) ringEnd {
	return ringEnd{isConsumer: true, c: NewConsume(twoSlots), bad: bad}
}

func successor(r ringEnd) ringEnd {
	r.second = true
	return r
}

func TestRingAllInterleavings(t *testing.T) {
	t.Run("lost results", func(t *testing.T) {
		x := ringModel(3, producer(0), consumer(0))
		x.unknowns = 2
		x.holds(t)
	})
	t.Run("a batch", func(t *testing.T) {
		x := ringModel(5, producer(0), consumer(0))
		x.actors[1].c.cfg.Batch = 2
		x.unknowns = 1
		x.holds(t)
	})
	t.Run("a producer dies and another takes over", func(t *testing.T) {
		x := ringModel(2, producer(0), consumer(0), successor(producer(0)))
		x.crashes, x.unknowns = 1, 1
		x.actors[1].c.cfg.Batch = 2
		x.until = 1
		x.holds(t)
	})
	t.Run("two consumers at a time", func(t *testing.T) {
		x := ringModel(3, producer(0), consumer(0), successor(consumer(0)))
		x.actors[0].p.cfg.Count, x.actors[1].c.cfg.Count, x.actors[2].c.cfg.Count = 1, 1, 1
		x.commands, x.until = 2, 1
		x.holds(t)
	})
}

func TestCheckerFindsBrokenRings(t *testing.T) {
	for name, actors := range map[string][]ringEnd{
		"ahead":  {producer(ringAhead), consumer(0)},
		"greedy": {producer(ringGreedy), consumer(0)},
		"lavish": {producer(0), consumer(ringLavish)},
	} {
		t.Run(name, func(t *testing.T) { ringModel(4, actors...).breaks(t, errUnsafe) })
	}
	t.Run("unconfirmed", func(t *testing.T) {
		x := ringModel(2, producer(0), consumer(ringUnconfirmed), successor(consumer(0)))
		x.actors[0].p.cfg.Count, x.actors[1].c.cfg.Count, x.actors[2].c.cfg.Count = 1, 1, 1
		x.until = 1
		x.breaks(t, errUnsafe)
	})
	t.Run("forgetful", func(t *testing.T) {
		x := ringModel(4, producer(ringForgetful), consumer(0))
		x.unknowns = 1
		x.breaks(t, errUnsafe)
	})
}

// Both ends step by step, and words that nobody should have written.
func TestRingAlone(t *testing.T) {
	p := NewProduce(twoSlots)
	p.Open()
	require.Equal(t, Op{Kind: Load, Off: 0}, p.Next(0))
	p.Done(0, Result{Word: 3<<countBits | 7})
	require.Equal(t, Op{Kind: CompareSwap, Compare: 3<<countBits | 7, Operand: 4<<countBits | 7}, p.Next(0))
	p.Done(0, Result{Word: 3<<countBits | 7})
	require.Equal(t, Op{Kind: Load, Off: 8}, p.Next(0))
	p.Done(0, Result{Word: 1<<countBits | 6})
	require.Equal(t, None, p.Next(0).Kind)
	require.EqualValues(t, 1, TermOf(p.Other()))
	p.Begin()
	require.Equal(t, Op{Kind: Write, Off: 16 + 16, Len: 16}, p.Next(0))
	p.Done(0, Result{})
	p.Next(0)
	p.Unknown(0)
	require.True(t, p.Doubtful())
	p.Begin() // the one in doubt comes first
	require.EqualValues(t, 8, p.Seq())
	require.Equal(t, Op{Kind: CompareSwap, Compare: 4<<countBits | 7, Operand: 4<<countBits | 8}, p.Next(0))
	p.Done(0, Result{Word: 4<<countBits | 8})
	require.Equal(t, Op{Kind: Load, Off: 8}, p.Next(0), "no room, as far as is known")
	p.Done(0, Result{Word: 1<<countBits | 6})
	require.Equal(t, Pause, p.Next(0).Kind)
	require.Equal(t, Load, p.Next(1).Kind)
	p.Done(0, Result{Word: 2<<countBits | 7})
	require.Equal(t, Op{Kind: Write, Off: 16, Len: 16}, p.Next(0))
	p.Done(0, Result{})
	p.Next(0)
	p.Done(0, Result{Word: 5<<countBits | 8})
	require.True(t, p.Fenced())

	for _, word := range []uint64{1<<countBits - 1, 3} {
		c := NewConsume(twoSlots)
		c.Open()
		c.Next(0)
		c.Done(0, Result{})
		c.Next(0)
		c.Done(0, Result{})
		c.Begin()
		c.Next(0)
		c.Done(0, Result{Word: word})
		require.Equal(t, Op{Kind: Load, Off: 8}, c.Next(0))
		c.Done(0, Result{Word: 1 << countBits})
		require.True(t, c.Strange(), "%d records in two slots", word)
	}
}
