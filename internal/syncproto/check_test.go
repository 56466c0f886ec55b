package syncproto

import (
	"errors"
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

// The model checker. A model has a few actors, each a machine, over a small shared
// memory, and walks through every state that they can reach: whose operation takes
// effect next, who learns of it, who dies where, which result is lost, and when time
// goes on. States that were seen are not walked through again.

const (
	maxActors = 3
	maxWords  = 13
	maxBuf    = 4
)

// flight is an operation that has been issued.
type flight struct {
	op    Op
	words int // of a copy that have moved, 1 for a word's operation
	got   Result
}

type actor[M comparable] struct {
	m       M
	used    bool // the model has it
	dead    bool
	flying  bool
	f       flight
	late    bool // an operation that was given up and may take effect yet
	lateOp  Op
	lateBuf [maxBuf]uint64
	buf     [maxBuf]uint64 // its local memory
	done    int            // commands that it was given
}

type state[M comparable] struct {
	mem      [maxWords]uint64
	a        [maxActors]actor[M]
	now      mono.Time
	crashes  int // left
	unknowns int // left
	ghost    [6]uint64
}

type machine[M comparable] interface {
	*M
	Machine
}

// model says what there is to explore.
type model[M comparable, P machine[M]] struct {
	actors   []M
	mem      [maxWords]uint64
	crashes  int
	unknowns int
	commands int       // that each actor gets
	until    mono.Time // time ends here
	clock    func(actor int, now mono.Time) mono.Time
	// command lists what an actor at rest may be told to do next.
	command func(s *state[M], i int, now mono.Time) []actor[M]
	// learned is called when actor i has learned of a result, with the state before.
	learned func(before, s *state[M], i int, now mono.Time) error
	// died is called when actor i is about to die.
	died func(s *state[M], i int)
	// invariant is what must hold in each state.
	invariant func(s *state[M]) error

	seed  maphash.Seed
	seen  map[uint64]struct{} // hashes of states
	stack []state[M]
	ends  int
	fault error
}

func (x *model[M, P]) local(i int, now mono.Time) mono.Time {
	if x.clock == nil {
		return now
	}
	return x.clock(i, now)
}

const maxStates = 1_000_000

var errTooMany = errors.New("more states than a test may look at")

// run explores; the error is the first fault.
func (x *model[M, P]) run() error {
	x.seed, x.seen = maphash.MakeSeed(), make(map[uint64]struct{})
	s := state[M]{mem: x.mem, now: 1, crashes: x.crashes, unknowns: x.unknowns}
	for i, m := range x.actors {
		s.a[i] = actor[M]{m: m, used: true}
	}
	x.add(&s)
	for len(x.stack) > 0 && x.fault == nil {
		s := x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		x.expand(&s)
		if len(x.seen) > maxStates {
			return errTooMany
		}
	}
	return x.fault
}

func (x *model[M, P]) add(s *state[M]) {
	h := maphash.Comparable(x.seed, *s)
	if _, ok := x.seen[h]; ok || x.fault != nil {
		return
	}
	x.seen[h] = struct{}{}
	if x.invariant != nil {
		if err := x.invariant(s); err != nil {
			x.fault = fmt.Errorf("%w\nin %.500v", err, fmt.Sprintf("%+v", *s))
			return
		}
	}
	x.stack = append(x.stack, *s)
}

// expand adds all states that follow s.
func (x *model[M, P]) expand(s *state[M]) {
	n := len(x.seen)
	for i := range s.a {
		a := &s.a[i]
		if a.late {
			t := *s
			b := &t.a[i]
			f := flight{op: b.lateOp}
			for !f.step(&t.mem, &b.lateBuf) {
			}
			b.late, b.lateOp, b.lateBuf = false, Op{}, [maxBuf]uint64{}
			x.add(&t)
		}
		if !a.used || a.dead {
			continue
		}
		if s.crashes > 0 {
			t := *s
			t.crashes--
			if x.died != nil {
				x.died(&t, i)
			}
			x.drop(&t, i, func(b *actor[M]) { b.dead, b.m, b.buf = true, *new(M), [maxBuf]uint64{} })
		}
		if a.flying {
			x.fly(s, i)
		} else {
			x.begin(s, i)
		}
	}
	if s.now < x.until {
		t := *s
		t.now++
		x.add(&t)
	}
	if len(x.seen) == n {
		x.ends++
	}
}

// drop ends what an actor has in flight without telling: it never takes effect, or
// a part of it does, or all of it later. A write does so only if its actor is dead:
// a connection begins when those before it are fenced.
func (x *model[M, P]) drop(s *state[M], i int, then func(b *actor[M])) {
	t := *s
	b := &t.a[i]
	f, flying, buf := b.f, b.flying, b.buf
	b.flying, b.f = false, flight{}
	then(b)
	x.add(&t)
	if flying && f.op.Kind != Read && f.op.Kind != Load && !f.whole() && !b.late && (f.op.Kind != Write || b.dead) {
		u := t
		c := &u.a[i]
		c.late, c.lateOp, c.lateBuf = true, f.op, buf
		x.add(&u)
	}
}

// begin lets an actor begin its next operation, or gives it something to do.
func (x *model[M, P]) begin(s *state[M], i int) {
	t := *s
	b := &t.a[i]
	now := x.local(i, s.now)
	switch op := P(&b.m).Next(now); op.Kind {
	case None:
		for _, c := range x.command(s, i, now) {
			u := *s
			u.a[i] = c
			x.add(&u)
		}
	case Pause:
	default:
		b.flying, b.f = true, flight{op: op}
		x.add(&t)
	}
}

// fly lets an operation take effect, or its actor learn of it.
func (x *model[M, P]) fly(s *state[M], i int) {
	now := x.local(i, s.now)
	if t := *s; !t.a[i].f.whole() {
		t.a[i].f.step(&t.mem, &t.a[i].buf)
		x.add(&t)
	} else {
		b := &t.a[i]
		P(&b.m).Done(now, b.f.got)
		b.flying, b.f = false, flight{}
		if x.learned != nil {
			if err := x.learned(s, &t, i, now); err != nil {
				x.fault = fmt.Errorf("%w\nafter %.500v", err, fmt.Sprintf("%+v", *s))
				return
			}
		}
		x.add(&t)
	}
	if s.unknowns > 0 {
		t := *s
		t.unknowns--
		x.drop(&t, i, func(b *actor[M]) { P(&b.m).Unknown(now) })
	}
}

// whole reports whether all of the operation has taken effect.
func (f *flight) whole() bool { return f.words >= max(1, int(f.op.Len/8)) }

// step lets one word of the operation take effect, and reports whether it was the
// last.
func (f *flight) step(mem *[maxWords]uint64, buf *[maxBuf]uint64) bool {
	w := &mem[f.op.Off/8+uint64(f.words)]
	b := &buf[f.op.Buf/8+uint64(f.words)]
	if f.words == 0 {
		f.got.Word = *w
	}
	switch f.op.Kind {
	case CompareSwap:
		if *w == f.op.Compare {
			*w = f.op.Operand
		}
	case Read:
		if !f.op.Scan { // whose machine looks at the result only
			*b = *w
		} else if f.words == 1 || f.words > 1 && *w < f.got.Least {
			f.got.Least = *w
		}
	case Write:
		*w = *b
	default:
	}
	f.words++
	return f.whole()
}

// holds requires that a model has no fault, and says how large it was.
func (x *model[M, P]) holds(t *testing.T) {
	t.Helper()
	require.NoError(t, x.run())
	t.Logf("%d states", len(x.seen))
}

// breaks requires that a model has a fault of a kind: the checker is worth something.
func (x *model[M, P]) breaks(t *testing.T, want error) {
	t.Helper()
	err := x.run()
	require.ErrorIs(t, err, want, "%d states", len(x.seen))
	t.Logf("found after %d states", len(x.seen))
}
