package devicetest

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
)

// ErrInjected is the failure that LateConfig.ErrorRate makes.
var ErrInjected = errors.New("devicetest: injected failure")

// LateConfig describes a Late. The zero value of each field but Size is useful.
type LateConfig struct {
	// Size in bytes.
	Size uint64
	// Seed chooses delays, order and failures; the same seed, calls and steps
	// give the same run.
	Seed uint64
	// MaxDelay bounds the virtual time from issue to effect, and again from
	// effect to completion. Operations wait longer only behind ones they
	// overlap. Default 1 ms.
	MaxDelay time.Duration
	// Prompt is the fraction, 0 to 1, of operations that are done at once where
	// nothing pending overlaps them.
	Prompt float64
	// ErrorRate is the fraction, 0 to 1, of operations that fail with
	// ErrInjected after moving some of their bytes.
	ErrorRate float64
	// NoAtomic makes Atomic answer device.ErrNoAtomic.
	NoAtomic bool
}

// Late is a memory that finishes late. Nothing happens but in Step: there is no
// goroutine and no clock. Buffers of a read hold garbage until it is done. All
// methods may be called from any goroutine; Step from one at a time.
type Late struct {
	cfg       LateConfig
	unordered bool // breaks the overlap rule, to test the suite

	mu      sync.Mutex
	mem     []byte     // guarded by mu, as everything below
	rng     *rand.Rand // in order of calls
	now     mono.Time  // of the latest event or step
	seq     uint64
	pieces  pieceHeap
	reports reportHeap
}

var _ device.Memory = (*Late)(nil)

// NewLate makes a Late of zeros whose clock stands at 1 ns.
func NewLate(c LateConfig) *Late {
	if c.MaxDelay <= 0 {
		c.MaxDelay = time.Millisecond
	}
	return &Late{
		cfg: c, mem: make([]byte, c.Size), now: 1,
		rng: rand.New(rand.NewPCG(c.Seed, 0x6c617465)),
	}
}

// Size is the length in bytes.
func (l *Late) Size() uint64 { return l.cfg.Size }

// Bytes is nil: the CPU cannot address this memory.
func (l *Late) Bytes() []byte { return nil }

// WriteV stages the bytes and writes them later.
func (l *Late) WriteV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	return l.vectored(v, writePiece, token, c)
}

// ReadV reads later.
func (l *Late) ReadV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	return l.vectored(v, readPiece, token, c)
}

// Atomic executes op later.
func (l *Late) Atomic(op *device.AtomicOp, token uint64, c device.Completer) (bool, error) {
	if l.cfg.NoAtomic {
		return true, device.ErrNoAtomic
	}
	if err := device.CheckAtomic(l.cfg.Size, 0, op); err != nil {
		return true, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &lateOp{token: token, c: c}
	o.pieces = []*piece{{op: o, kind: atomicPiece, off: op.Off, n: device.WordSize, atomic: op}}
	return l.issue(o)
}

func (l *Late) vectored(v []device.Vec, kind pieceKind, token uint64, c device.Completer) (bool, error) {
	if err := device.CheckVec(l.cfg.Size, v); err != nil {
		return true, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &lateOp{token: token, c: c}
	for i := range v {
		l.cut(o, kind, v[i])
	}
	return l.issue(o)
}

// cut makes one or two pieces of a vector's element.
func (l *Late) cut(o *lateOp, kind pieceKind, v device.Vec) {
	data := v.B
	if kind == writePiece {
		data = append([]byte(nil), v.B...)
	} else {
		for i := range data {
			data[i] = 0xdb
		}
	}
	for off := v.Off; len(data) > 0; {
		n := len(data)
		if n > 1 && l.rng.IntN(2) == 0 {
			n = 1 + l.rng.IntN(n-1)
		}
		o.pieces = append(o.pieces, &piece{op: o, kind: kind, off: off, n: uint64(n), data: data[:n]})
		data, off = data[n:], off+uint64(n)
	}
}

// issue schedules the pieces of o, or executes them now.
func (l *Late) issue(o *lateOp) (bool, error) {
	if l.rng.Float64() < l.cfg.ErrorRate {
		o.err = fmt.Errorf("%w (operation %d)", ErrInjected, l.seq)
		for _, p := range o.pieces {
			p.skip = l.rng.IntN(2) == 0
		}
	}
	if l.rng.Float64() < l.cfg.Prompt && !l.blocked(o) {
		for _, p := range o.pieces {
			p.apply(l.mem)
		}
		return true, o.err
	}
	for _, p := range o.pieces {
		l.schedule(p)
	}
	o.left = len(o.pieces)
	if o.left == 0 {
		l.report(o)
	}
	return false, nil
}

func (l *Late) blocked(o *lateOp) bool {
	for _, p := range o.pieces {
		for _, earlier := range l.pieces {
			if p.conflicts(earlier) {
				return true
			}
		}
	}
	return false
}

// schedule picks the time at which p takes effect: not before any pending piece
// that it overlaps, later ones of the same operation included.
func (l *Late) schedule(p *piece) {
	p.at = l.now.Add(l.delay())
	if !l.unordered {
		for _, earlier := range l.pieces {
			if p.conflicts(earlier) {
				p.at = max(p.at, earlier.at)
			}
		}
	}
	l.seq++
	p.seq = l.seq // breaks ties in order of issue
	heap.Push(&l.pieces, p)
}

// report picks the time at which o completes.
func (l *Late) report(o *lateOp) {
	o.at = l.now.Add(l.delay())
	l.seq++
	o.seq = l.seq
	heap.Push(&l.reports, o)
}

func (l *Late) delay() time.Duration {
	return 1 + time.Duration(l.rng.Int64N(int64(l.cfg.MaxDelay)))
}

// Next is when something will happen next: the argument for the next Step. It is
// 0 when nothing is pending.
func (l *Late) Next() mono.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next()
}

func (l *Late) next() mono.Time {
	var t mono.Time
	if len(l.pieces) > 0 {
		t = l.pieces[0].at
	}
	if len(l.reports) > 0 {
		t = mono.Earliest(t, l.reports[0].at)
	}
	return t
}

// Step lets everything happen that is due by now, in order of time, and returns
// how many operations it completed. Completers run inside it with no lock held
// and may start new operations. Time does not run backward: an earlier now does
// nothing.
func (l *Late) Step(now mono.Time) int {
	completed := 0
	for {
		o, more := l.event(now)
		if o != nil {
			completed++
			o.c.MemoryDone(o.token, o.err)
		}
		if !more {
			return completed
		}
	}
}

// event executes what is due next. It returns an operation to complete, if that
// was it, and whether there was anything.
func (l *Late) event(now mono.Time) (*lateOp, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next()
	if next.IsZero() || now.Before(next) {
		l.now = max(l.now, now)
		return nil, false
	}
	l.now = max(l.now, next)
	if len(l.reports) > 0 && l.reports[0].at == next {
		return heap.Pop(&l.reports).(*lateOp), true
	}
	p := heap.Pop(&l.pieces).(*piece)
	p.apply(l.mem)
	if p.op.left--; p.op.left == 0 {
		l.report(p.op)
	}
	return nil, true
}

// Drain steps until nothing is pending and returns how many operations it
// completed.
func (l *Late) Drain() int {
	completed := 0
	for t := l.Next(); !t.IsZero(); t = l.Next() {
		completed += l.Step(t)
	}
	return completed
}

// Pending is how many operations have not completed.
func (l *Late) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	ops := make(map[*lateOp]bool)
	for _, p := range l.pieces {
		ops[p.op] = true
	}
	return len(ops) + len(l.reports)
}

// Snapshot copies the memory as it is now, with what has taken effect.
func (l *Late) Snapshot() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]byte(nil), l.mem...)
}
