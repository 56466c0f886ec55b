package perf

import (
	"encoding/binary"
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// atomicCheck looks at what the atomics of one queue pair returned. Nobody else
// changes the words they work on, so that each result follows from the one before
// at the same place: one more after an addition of 1, the same after an exchange
// of 0 for 0.
type atomicCheck struct {
	where   string
	results []byte // the result of message k at k mod depth
	depth   uint64
	places  uint64 // words that the messages step through
	last    []uint64
	step    uint64
}

func newAtomicChecks(e *engine) []atomicCheck {
	out := make([]atomicCheck, e.cfg.QPs)
	for i := range out {
		out[i] = atomicCheck{
			where: fmt.Sprintf("queue pair %d", i+1), results: e.d.local(i), depth: uint64(e.cfg.TxDepth),
			places: uint64(e.walk.count), last: make([]uint64, e.walk.count),
		}
		if e.cfg.Atomic == FetchAdd {
			out[i].step = 1
		}
	}
	return out
}

// look checks messages from to to, without the latter.
func (a *atomicCheck) look(from, to uint64) error {
	for k := from; k < to; k++ {
		at := k % a.depth * atomicSize
		got := binary.NativeEndian.Uint64(a.results[at : at+atomicSize])
		place := k % a.places
		if want := a.last[place] + a.step; k >= a.places && got != want {
			return &tools.DataError{Where: fmt.Sprintf("atomic %d of %s", k+1, a.where), Problem: fmt.Sprintf("returned %#x, not %#x", got, want)}
		}
		a.last[place] = got
	}
	return nil
}

// checkTarget looks at the words that the peer's atomics worked on, of which this
// end knows the beginning: count additions of 1 in all on each queue pair, or no
// change. It is for a run whose every message is counted.
func (d *device) checkTarget(c *Config, count uint64) error {
	w := d.lay.walk(atomicSize)
	for qp := range c.QPs {
		was, is := make([]byte, d.lay.area), d.shared(qp)
		pattern(was, d.seed, qp)
		var sum uint64
		for n := range w.count {
			at := w.at(uint64(n))
			sum += binary.NativeEndian.Uint64(is[at:]) - binary.NativeEndian.Uint64(was[at:])
		}
		want := count
		if c.Atomic == CmpSwap {
			want = 0
		}
		if sum != want {
			return &tools.DataError{Where: fmt.Sprintf("queue pair %d", qp+1), Problem: fmt.Sprintf("its words grew by %d in all, not %d", sum, want)}
		}
	}
	return nil
}
