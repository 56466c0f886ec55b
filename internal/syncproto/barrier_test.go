package syncproto

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

var (
	errTooEarly = fmt.Errorf("%w: a barrier was passed before all had arrived", errUnsafe)
	errDivided  = fmt.Errorf("%w: some have passed a round that others know to be given up", errUnsafe)
)

func party(n, parties uint64) Barrier {
	return NewBarrier(BarrierConfig{Parties: parties, Number: n, Patience: 2, MinPause: 1, MaxPause: 1})
}

// barrierModel has parties who come to the barrier a few times, on machines of type M,
// which holds a Barrier.
func barrierModel[M comparable, P machine[M]](barrier func(*M) *Barrier, parties ...M) *model[M, P] {
	x := new(model[M, P])
	*x = model[M, P]{
		commands: 2,
		actors:   parties,
		until:    4,
		command: func(s *state[M], i int, _ mono.Time) []actor[M] {
			a := s.a[i]
			if a.done >= x.commands || barrier(&a.m).Broken() || barrier(&a.m).Strange() {
				return nil
			}
			a.done++
			barrier(&a.m).Begin()
			return []actor[M]{a}
		},
		// ghost[0] is the greatest round that anybody passed, ghost[1] the lowest that
		// anybody knows to be given up.
		learned: func(before, s *state[M], i int, _ mono.Time) error {
			was, is := barrier(&before.a[i].m), barrier(&s.a[i].m)
			if is.Strange() {
				return fmt.Errorf("%w: a strange word", errUnsafe)
			}
			if is.Passed() > was.Passed() && was.known {
				for j := range x.actors {
					if s.mem[1+j] < is.Passed() {
						return errTooEarly
					}
				}
				s.ghost[0] = max(s.ghost[0], is.Passed())
			}
			if is.Broken() && (s.ghost[1] == 0 || is.target() < s.ghost[1]) {
				s.ghost[1] = is.target()
			}
			if s.ghost[1] != 0 && s.ghost[0] >= s.ghost[1] {
				return errDivided
			}
			return nil
		},
	}
	return x
}

func alone(b *Barrier) *Barrier { return b }

func TestBarrierAllInterleavings(t *testing.T) {
	t.Run("two, crash and lost results", func(t *testing.T) {
		x := barrierModel(alone, party(0, 2), party(1, 2))
		x.crashes, x.unknowns, x.until = 1, 1, 3
		x.holds(t)
	})
	t.Run("three", func(t *testing.T) {
		x := barrierModel(alone, party(0, 3), party(1, 3), party(2, 3))
		x.commands, x.until = 1, 2
		for i := range x.actors {
			x.actors[i].cfg.Patience = 1
		}
		x.holds(t)
	})
	t.Run("one of two gives up", func(t *testing.T) {
		x := barrierModel(alone, party(0, 2), party(1, 2))
		inner := x.command
		x.command = func(s *state[Barrier], i int, now mono.Time) []actor[Barrier] {
			next := inner(s, i, now)
			if len(next) > 0 && i == 1 {
				a := s.a[i]
				a.done++
				a.m.Break(a.m.Passed() + 1)
				next = append(next, a)
			}
			return next
		}
		x.holds(t)
	})
	t.Run("who gives up late breaks nothing", func(t *testing.T) {
		x := barrierModel(alone, party(0, 2), party(1, 2))
		for i := range x.actors {
			x.actors[i].cfg.Patience = 0
		}
		inner, late := x.command, false
		x.command = func(s *state[Barrier], i int, now mono.Time) []actor[Barrier] {
			next := inner(s, i, now)
			if a := s.a[i]; len(next) > 0 && a.m.Passed() > 0 {
				late = true
				a.done++
				a.m.Break(a.m.Passed())
				next = append(next, a)
			}
			return next
		}
		x.invariant = func(s *state[Barrier]) error {
			if s.a[0].m.Broken() || s.a[1].m.Broken() {
				return fmt.Errorf("%w: a round was broken that nobody gave up", errUnsafe)
			}
			return nil
		}
		x.holds(t)
		require.True(t, late)
	})
	t.Run("nobody waits for the dead", func(t *testing.T) {
		x := barrierModel(alone, party(0, 2), party(1, 2))
		x.crashes = 1
		told := false
		x.invariant = func(s *state[Barrier]) error {
			told = told || s.a[1].dead && s.a[0].m.Broken()
			return nil
		}
		x.holds(t)
		require.True(t, told, "that the other is missing")
	})
}

// Broken variants, each of which the checker must find.

// impatient is a party that gives a round up for itself alone.
type impatient struct{ Barrier }

func (b *impatient) Next(now mono.Time) Op {
	if b.phase == barrierBreaking {
		b.phase = barrierBroken
	}
	return b.Barrier.Next(now)
}

func (b *impatient) Done(now mono.Time, r Result) {
	b.Barrier.Done(now, r)
	if b.phase == barrierBreaking {
		b.phase = barrierBroken
	}
}

// unanimous passes when it sees that all have arrived, without deciding it for all.
type unanimous struct{ Barrier }

func (b *unanimous) Done(now mono.Time, r Result) {
	b.Barrier.Done(now, r)
	if b.phase == barrierPassing {
		b.passed, b.arrived, b.since, b.phase = b.target(), false, 0, barrierIdle
	}
}

// early does not count itself.
type early struct{ Barrier }

func (b *early) Done(now mono.Time, r Result) {
	if b.phase == barrierLooking && b.arrived {
		r.Least++
	}
	b.Barrier.Done(now, r)
}

func TestCheckerFindsBrokenBarriers(t *testing.T) {
	t.Run("impatient", func(t *testing.T) {
		barrierModel(func(m *impatient) *Barrier { return &m.Barrier }, impatient{party(0, 2)}, impatient{party(1, 2)}).breaks(t, errDivided)
	})
	t.Run("unanimous", func(t *testing.T) {
		barrierModel(func(m *unanimous) *Barrier { return &m.Barrier }, unanimous{party(0, 2)}, unanimous{party(1, 2)}).breaks(t, errUnsafe)
	})
	t.Run("early", func(t *testing.T) {
		barrierModel(func(m *early) *Barrier { return &m.Barrier }, early{party(0, 2)}, early{party(1, 2)}).breaks(t, errTooEarly)
	})
}

// A party's way, step by step: it goes on where it was when it was interrupted, and
// does not join a round that passed while it was away twice.
func TestBarrierAlone(t *testing.T) {
	b := party(1, 2)
	b.Begin()
	look := Op{Kind: Read, Len: 24, Scan: true}
	require.Equal(t, look, b.Next(0))
	b.Done(0, Result{Word: roundWord(4), Least: 4})
	require.Equal(t, Op{Kind: CompareSwap, Off: 16, Compare: 4, Operand: 5}, b.Next(0))
	b.Unknown(0)
	require.Equal(t, Op{Kind: CompareSwap, Off: 16, Compare: 4, Operand: 5}, b.Next(0))
	b.Done(0, Result{Word: 5})
	require.Equal(t, look, b.Next(0))
	b.Done(0, Result{Word: roundWord(4), Least: 4})
	require.Equal(t, Pause, b.Next(0).Kind)

	b.Begin()
	require.Equal(t, look, b.Next(1))
	b.Done(1, Result{Word: roundWord(5), Least: 5})
	require.Equal(t, None, b.Next(1).Kind)
	require.EqualValues(t, 5, b.Passed())

	b.Begin()
	b.Next(1)
	b.Done(1, Result{Word: roundWord(9), Least: 9})
	require.True(t, b.Strange(), "nobody passes without this one")
}
