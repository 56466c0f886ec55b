package nic

import (
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// opKind is what a late operation is for.
type opKind uint8

const (
	opPlace opKind = iota
	opAtomic
	opFetch
)

// lateOp is one placement, atomic or fetch that memory may finish later. It may
// be several calls to several memories. Its spans stay lent until it is over.
type lateOp struct {
	index, serial uint32

	q     *Queue
	peer  netip.Addr // who asked for it
	gen   uint32
	kind  opKind
	token uint64      // the engine's
	entry *heldPacket // of a fetch
	spans []mr.Span   // acquired

	atomic  device.AtomicOp
	pending int        // calls not finished, and one for who issues them; guarded by the table's mu
	outcome wr.Outcome // guarded by the table's mu
}

// id is the token that memories get.
func (op *lateOp) id() uint64 { return uint64(op.serial)<<32 | uint64(op.index) }

// release gives the spans back.
func (op *lateOp) release() {
	for i := range op.spans {
		op.spans[i].Release()
	}
	clear(op.spans)
	op.spans = op.spans[:0]
}

// lateTable knows the operations in progress. Its size is bounded by what the
// queue pairs admit: maxPlacing placements and maxHeld fetches each. Its lock is a
// leaf.
type lateTable struct {
	mu     sync.Mutex
	ops    []*lateOp // by index; guarded by mu, as all below
	spare  []*lateOp
	over   []*lateOp // finished, not dealt with yet
	live   int
	closed bool // nobody will deal with them any more
}

// begin returns an operation with one call pending: that of its issuer.
func (t *lateTable) begin(q *Queue, gen uint32, kind opKind, token uint64) *lateOp {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live++
	var op *lateOp
	if n := len(t.spare); n > 0 {
		op = t.spare[n-1]
		t.spare = t.spare[:n-1]
	} else {
		op = &lateOp{index: uint32(len(t.ops))}
		t.ops = append(t.ops, op)
	}
	op.serial++
	op.q, op.peer, op.gen, op.kind, op.token, op.entry = q, q.View().Peer, gen, kind, token, nil
	op.pending, op.outcome = 1, wr.Done
	return op
}

// add counts a call about to be made.
func (t *lateTable) add(op *lateOp) {
	t.mu.Lock()
	op.pending++
	t.mu.Unlock()
}

// end notes the end of a call, or of the issuing, and reports whether the
// operation is over, in which case it is the caller's.
func (t *lateTable) end(op *lateOp, o wr.Outcome) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endLocked(op, o)
}

func (t *lateTable) endLocked(op *lateOp, o wr.Outcome) bool {
	if o != wr.Done && op.outcome == wr.Done {
		op.outcome = o
	}
	op.pending--
	return op.pending == 0
}

// put takes back an operation that is over.
func (t *lateTable) put(op *lateOp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	op.q, op.entry = nil, nil
	t.spare = append(t.spare, op)
	t.live--
}

// done notes the end of a call by its token. It returns whether there is
// something to deal with, and an operation whose spans are to be released by the
// caller because nobody else will.
func (t *lateTable) done(token uint64, err error) (wake bool, orphan *lateOp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, serial := uint32(token), uint32(token>>32)
	if int(i) >= len(t.ops) || t.ops[i].serial != serial || t.ops[i].pending == 0 {
		return false, nil // a memory that reports twice
	}
	op := t.ops[i]
	if !t.endLocked(op, op.outcomeOf(err)) {
		return false, nil
	}
	if t.closed {
		return false, op
	}
	t.over = append(t.over, op)
	return true, nil
}

// take moves the operations that are over to out.
func (t *lateTable) take(out []*lateOp) []*lateOp {
	t.mu.Lock()
	defer t.mu.Unlock()
	out = append(out, t.over...)
	clear(t.over)
	t.over = t.over[:0]
	return out
}

// waiting reports whether take would give something.
func (t *lateTable) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.over) > 0
}

// inProgress returns the number of operations not dealt with.
func (t *lateTable) inProgress() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// landing reports whether an operation that match says yes to may still change
// memory.
func (t *lateTable) landing(match func(*lateOp) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == 0 {
		return false
	}
	for _, op := range t.ops {
		if op.q != nil && op.pending > 0 && op.kind != opFetch && match(op) {
			return true
		}
	}
	return false
}

// close makes the operations that are still in progress give back their spans
// when they end.
func (t *lateTable) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
}

// memoryFault is why memory failed for a generation of a queue pair.
type memoryFault struct {
	gen uint32
	err error
}

// outcomeOf is what the engine is told of err, which the queue pair keeps.
func (op *lateOp) outcomeOf(err error) wr.Outcome {
	if err == nil {
		return wr.Done
	}
	if f := op.q.fault.Load(); f == nil || f.gen != op.gen {
		op.q.fault.CompareAndSwap(f, &memoryFault{gen: op.gen, err: err})
	}
	return wr.Failed
}

// MemoryError is why memory failed under the queue pair since it was last reset: the
// first error of its device, or nil.
func (q *Queue) MemoryError() error {
	if f := q.fault.Load(); f != nil && f.gen == q.View().Gen {
		return f.err
	}
	return nil
}

// MemoryDone implements device.Completer: a memory has finished what it could not
// finish at once. It never blocks.
func (n *NIC) MemoryDone(token uint64, err error) {
	wake, orphan := n.late.done(token, err)
	if orphan != nil {
		orphan.release()
		n.late.put(orphan)
	}
	if wake {
		n.kick()
	}
}

// Landing reports whether late memory is still being changed for a queue pair with
// this number, be it closed. One in the error state, or closed, begins nothing new.
func (n *NIC) Landing(qpn roce.QPN) bool {
	return n.late.landing(func(op *lateOp) bool { return op.q.qpn == qpn })
}

// LandingFrom reports whether late memory is still being changed by what a peer has
// sent to queue pairs that have ended, closed ones among them, whoever had them.
func (n *NIC) LandingFrom(peer netip.Addr) bool {
	return n.late.landing(func(op *lateOp) bool {
		s := op.q.View().State
		return op.peer == peer && (s == qp.Err || s == qp.Reset)
	})
}
