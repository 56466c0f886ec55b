package nic

import (
	ratomic "github.com/gohixl/hixl/atomic"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
)

// perform does what an accepted packet asks for, under the queue pair's lock, so
// that operations reach memory in the order in which packets were accepted.
func (r *receiver) perform(now mono.Time, q *Queue, w *wr.Work) {
	switch w.Kind {
	case wr.WorkPlace:
		if direct(w.Spans) {
			q.Commit(now, q.Gen(), w.Token, r.scatter(w.Spans, w.Data), 0)
			return
		}
		r.placeLate(now, q, w)
	case wr.WorkAtomic:
		r.atomic(now, q, w)
	case wr.WorkNone:
	}
}

// scatter copies data to directly addressable spans.
func (r *receiver) scatter(spans []mr.Span, data []byte) wr.Outcome {
	for i := range spans {
		if !r.loan.take(&spans[i]) {
			return wr.Revoked
		}
		n := copy(spans[i].Bytes(), data)
		data = data[n:]
	}
	return wr.Done
}

// minFused is the payload from which checking and copying in one pass pays.
const minFused = 256

// copyChecked copies the payload of the packet to where its connection expects it
// while it checks the ICRC. placed is false if the place does not follow from the
// connection's state, or cannot be written directly.
func (r *receiver) copyChecked(q *Queue, v *qp.View, rx *transport.Rx, h *roce.Headers, b []byte) (ok, placed bool) {
	p := &r.pkt
	r.lock(q)
	if p.Opcode.IsRequest() && (q.reading || q.ReadsPending()) {
		return false, false // READs before it come first
	}
	spans, predicted := q.Predict(p, v)
	if !predicted || !direct(spans) || r.nic.cfg.NoICRCCheck {
		return false, false
	}
	head := p.HeaderLen()
	sum, data := r.sums.of(v).Begin(h, h.ID, b[:head], len(b)), p.Payload
	for i := range spans {
		if !r.loan.take(&spans[i]) {
			return false, false // the engine is told in the usual way
		}
		to := spans[i].Bytes()
		sum = sum.Copy(to, data[:len(to)])
		data = data[len(to):]
	}
	sum = sum.Add(b[head+len(p.Payload) : len(b)-roce.ICRCLen])
	return r.right(sum, v, rx, h, b), true
}

// placeLate writes data to spans of memory that may finish later.
func (r *receiver) placeLate(now mono.Time, q *Queue, w *wr.Work) {
	n := r.nic
	op := n.late.begin(q, q.Gen(), opPlace, w.Token)
	outcome, data := wr.Done, w.Data
	for i := range w.Spans {
		if !w.Spans[i].Acquire() {
			outcome = wr.Revoked
			break
		}
		op.spans = append(op.spans, w.Spans[i])
		k := w.Spans[i].Len
		r.vec[0] = device.Vec{Off: w.Spans[i].Off, B: data[:k]}
		data = data[k:]
		n.late.add(op)
		mem := w.Spans[i].Region.Memory()
		q.slow, _ = mem.(device.Congester)
		done, err := mem.WriteV(r.vec[:], op.id(), n)
		if done {
			n.late.end(op, op.outcomeOf(err)) // the issuer's own call is still pending
		}
	}
	if n.late.end(op, outcome) {
		n.finish(now, op)
	}
}

// atomic executes a 64-bit operation.
func (r *receiver) atomic(now mono.Time, q *Queue, w *wr.Work) {
	n, s := r.nic, w.Spans[0]
	if !s.Acquire() {
		q.Commit(now, q.Gen(), w.Token, wr.Revoked, 0)
		return
	}
	op := n.late.begin(q, q.Gen(), opAtomic, w.Token)
	op.spans = append(op.spans, s)
	op.atomic = device.AtomicOp{Kind: kindOf(w.Op), Off: s.Off, Operand: w.Operand, Compare: w.Compare}
	n.late.add(op)
	done, err := ratomic.Do(s.Region.Memory(), &op.atomic, op.id(), n)
	if done {
		n.late.end(op, op.outcomeOf(err))
	}
	if n.late.end(op, wr.Done) {
		n.finish(now, op)
	}
}

func kindOf(op roce.Opcode) device.Kind {
	switch op {
	case roce.OpCmpSwap:
		return device.CompareSwap
	case roce.OpFetchAdd:
		return device.FetchAdd
	default:
		return device.Store // ATOMIC WRITE, §6.1
	}
}

// finish tells the engine how a late operation ended. The queue pair's lock is
// held.
func (n *NIC) finish(now mono.Time, op *lateOp) {
	q := op.q
	op.release()
	switch op.kind {
	case opPlace:
		q.Commit(now, op.gen, op.token, op.outcome, 0)
	case opAtomic:
		q.Commit(now, op.gen, op.token, op.outcome, op.atomic.Result)
	case opFetch:
		op.entry.ready, op.entry.outcome = true, op.outcome
	}
	n.late.put(op)
}
