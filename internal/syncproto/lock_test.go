package syncproto

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

var (
	errUnsafe     = errors.New("unsafe")
	errTwoHolders = fmt.Errorf("%w: two hold the lock", errUnsafe)
	errOldToken   = fmt.Errorf("%w: a token that is not greater than an earlier one", errUnsafe)
)

var tick = LockConfig{Lease: 3, Margin: 1, MinPause: 1, MaxPause: 1}

// lockModel has users of a lock who acquire, renew and release as they like, on
// machines of type M, which holds a Lock.
func lockModel[M comparable, P machine[M]](lock func(*M) *Lock, users ...M) *model[M, P] {
	x := new(model[M, P])
	*x = model[M, P]{
		commands: 3,
		actors:   users,
		until:    6,
		command: func(s *state[M], i int, now mono.Time) (next []actor[M]) {
			one := func(f func(l *Lock)) {
				a := s.a[i]
				a.done++
				f(lock(&a.m))
				next = append(next, a)
			}
			l := lock(&s.a[i].m)
			switch {
			case s.a[i].done >= x.commands:
			case l.phase == lockHolding:
				one(func(l *Lock) { l.Renew(now) })
				one(func(l *Lock) { l.Release() })
			case l.phase == lockIdle:
				one(func(l *Lock) { l.Acquire(false) })
			}
			return next
		},
		// ghost[0] is the greatest token so far.
		learned: func(before, s *state[M], i int, _ mono.Time) error {
			was, is := lock(&before.a[i].m), lock(&s.a[i].m)
			if was.phase == lockTaking && is.phase == lockHolding {
				if is.Token() <= s.ghost[0] {
					return errOldToken
				}
				s.ghost[0] = is.Token()
			}
			return nil
		},
		invariant: func(s *state[M]) error {
			holders := 0
			for i := range s.a {
				if a := &s.a[i]; a.used && !a.dead && lock(&a.m).Held(s.now) {
					holders++
				}
			}
			if holders > 1 {
				return errTwoHolders
			}
			return nil
		},
	}
	return x
}

var slow = LockConfig{Lease: 4, Margin: 1, MinPause: 1, MaxPause: 1}

func plain(l *Lock) *Lock { return l }

func TestLockAllInterleavings(t *testing.T) {
	u := NewLock(tick)
	t.Run("two, crash and lost results", func(t *testing.T) {
		x := lockModel(plain, u, u)
		x.crashes, x.unknowns, x.commands, x.until = 1, 1, 2, 4
		x.holds(t)
	})
	t.Run("three", func(t *testing.T) {
		x := lockModel(plain, u, u, u)
		x.until, x.commands = 4, 1
		x.holds(t)
	})
	t.Run("after a holder that died", func(t *testing.T) {
		x := lockModel(plain, u, u)
		x.crashes, x.commands = 1, 1
		saved := false
		x.died = func(s *state[Lock], i int) {
			if s.a[i].m.phase == lockHolding && i == 0 {
				s.ghost[1] = 1
			}
		}
		inner := x.invariant
		x.invariant = func(s *state[Lock]) error {
			if s.ghost[1] == 1 && s.a[1].m.Held(s.now) {
				saved = true
			}
			return inner(s)
		}
		x.holds(t)
		require.True(t, saved, "its lock can be had")
	})
}

// A slow clock at the holder: three ticks of it are four of the contender's.
func slowFirst(i int, now mono.Time) mono.Time {
	if i == 0 {
		return 100 + now*3/4
	}
	return now
}

// skewed judges each user by its own clock.
func skewed(cfg LockConfig) *model[Lock, *Lock] {
	u := NewLock(cfg)
	x := lockModel(plain, u, u)
	x.clock, x.until, x.commands = slowFirst, 8, 1
	x.invariant = func(s *state[Lock]) error {
		if s.a[0].m.Held(slowFirst(0, s.now)) && s.a[1].m.Held(slowFirst(1, s.now)) {
			return errTwoHolders
		}
		return nil
	}
	return x
}

func TestLockClocksOfDifferentSpeed(t *testing.T) { skewed(slow).holds(t) }

// Broken variants, each of which the checker must find.

// hasty takes the lock away before the lease is over.
type hasty struct{ Lock }

func (l *hasty) Done(now mono.Time, r Result) {
	l.Lock.Done(now, r)
	if l.phase == lockPausing && now.Sub(l.since) >= l.cfg.Lease/2 {
		l.phase = lockTaking
	}
}

// blind counts the lease from its first look, though the word has changed.
type blind struct{ Lock }

func (l *blind) Done(now mono.Time, r Result) {
	since, known := l.since, l.known
	l.Lock.Done(now, r)
	if known && l.phase == lockPausing {
		l.since = since
		if now.Sub(since) >= l.cfg.Lease {
			l.phase = lockTaking
		}
	}
}

// trusting takes an acquisition with a lost result for a success.
type trusting struct{ Lock }

func (l *trusting) Unknown(now mono.Time) {
	if l.phase == lockTaking {
		l.took(now)
		return
	}
	l.Lock.Unknown(now)
}

// late counts its lease from the answer, not from the question.
type late struct{ Lock }

func (l *late) Done(now mono.Time, r Result) {
	taking := l.phase == lockTaking
	l.Lock.Done(now, r)
	if taking && l.word == taken(r.Word) && l.phase != lockTaking {
		l.phase, l.until = lockHolding, l.limit(now)
	}
}

// forgetful releases the lock with a word that was there before.
type forgetful struct{ Lock }

func (l *forgetful) Next(now mono.Time) Op {
	op := l.Lock.Next(now)
	if l.phase == lockReleasing {
		op.Operand = 0
	}
	return op
}

// credulous takes any word that follows its own for its own renewal.
type credulous struct{ Lock }

func (l *credulous) Done(now mono.Time, r Result) {
	if l.phase == lockRenewing && l.doubt && r.Word == renewed(l.word) {
		l.word, l.doubt, l.until, l.phase = r.Word, false, l.limit(now), lockHolding
		return
	}
	l.Lock.Done(now, r)
}

func (l *credulous) Unknown(mono.Time) {
	if l.phase == lockRenewing {
		l.doubt = true
		return
	}
	l.wait(l.began)
}

func TestCheckerFindsBrokenLocks(t *testing.T) {
	u := NewLock(tick)
	t.Run("hasty", func(t *testing.T) {
		lockModel(func(m *hasty) *Lock { return &m.Lock }, hasty{u}, hasty{u}).breaks(t, errUnsafe)
	})
	t.Run("blind", func(t *testing.T) {
		lockModel(func(m *blind) *Lock { return &m.Lock }, blind{u}, blind{u}).breaks(t, errUnsafe)
	})
	t.Run("trusting", func(t *testing.T) {
		x := lockModel(func(m *trusting) *Lock { return &m.Lock }, trusting{u}, trusting{u})
		x.unknowns = 1
		x.breaks(t, errUnsafe)
	})
	t.Run("late", func(t *testing.T) {
		lockModel(func(m *late) *Lock { return &m.Lock }, late{u}, late{u}).breaks(t, errUnsafe)
	})
	t.Run("forgetful", func(t *testing.T) {
		lockModel(func(m *forgetful) *Lock { return &m.Lock }, forgetful{u}, forgetful{u}).breaks(t, errUnsafe)
	})
	t.Run("credulous", func(t *testing.T) {
		x := lockModel(func(m *credulous) *Lock { return &m.Lock }, credulous{u}, credulous{u})
		x.unknowns, x.commands = 1, 2
		x.breaks(t, errUnsafe)
	})
	t.Run("no margin for a slow clock", func(t *testing.T) {
		cfg := slow
		cfg.Margin = 0
		skewed(cfg).breaks(t, errUnsafe)
	})
}

// An uncontended user's way, step by step.
func TestLockAlone(t *testing.T) {
	l := NewLock(LockConfig{Off: 16, Lease: time.Second, Margin: 100 * time.Millisecond, MinPause: 1, MaxPause: 1})
	at := mono.Time(5 * time.Second)
	l.Acquire(true)
	require.Equal(t, Op{Kind: Load, Off: 16}, l.Next(at))
	l.Done(at, Result{Word: 6})
	require.Equal(t, Op{Kind: CompareSwap, Off: 16, Compare: 6, Operand: 9}, l.Next(at))
	l.Done(at+3, Result{Word: 6})
	require.True(t, l.Held(at+3))
	require.EqualValues(t, 4, l.Token())
	require.Equal(t, at.Add(900*time.Millisecond), l.Until())
	require.False(t, l.Held(l.Until()))
	l.Renew(at + 9)
	require.Equal(t, Op{Kind: CompareSwap, Off: 16, Compare: 9, Operand: 11}, l.Next(at+9))
	l.Done(at+10, Result{Word: 9})
	require.Equal(t, (at + 9).Add(900*time.Millisecond), l.Until())
	l.Release()
	require.False(t, l.Held(at+10))
	require.Equal(t, Op{Kind: CompareSwap, Off: 16, Compare: 11, Operand: 12}, l.Next(at+11))
	l.Done(at+12, Result{Word: 11})
	require.Equal(t, None, l.Next(at+12).Kind)
	require.False(t, l.Lost())

	l.Acquire(true)
	l.Next(at + 20)
	l.Done(at+20, Result{Word: 15})
	require.True(t, l.Refused())
}
