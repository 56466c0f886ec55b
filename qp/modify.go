package qp

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

// Modify changes attributes and, with [MaskState], the state (§3.18). The error
// is a *[StateError] or *[AttrError] and then nothing has changed. Whoever calls
// it drains the queue pair afterwards: entering the error state flushes.
func (q *QP) Modify(now mono.Time, attr *Attr, mask AttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := q.now()
	to := from
	if mask&MaskState != 0 {
		to = attr.State
	}
	if err := q.checkModify(attr, mask, from, to); err != nil {
		return err
	}
	switch to {
	case Reset:
		q.reset()
		return nil
	case Err:
		q.fail()
		return nil
	case Init, RTR, RTS, SQD, SQE:
	}
	q.attr.merge(attr, mask)
	q.enter(from, to, attr, mask)
	q.state = to
	q.updateView()
	return nil
}

func (q *QP) checkModify(attr *Attr, mask AttrMask, from, to State) error {
	if q.gone {
		return &StateError{Op: "modify", State: Reset, To: to, Advice: "it was closed"}
	}
	if err := CheckTransition(q.cfg.Type, from, to, mask); err != nil {
		return err
	}
	if mask&MaskCurState != 0 && attr.CurState != from {
		return &AttrError{From: from, To: to, Attr: MaskCurState, Value: attr.CurState, Allowed: from.String() + ", the state it is in"}
	}
	if err := attr.checkRanges(mask, from, to, &q.cfg); err != nil {
		return err
	}
	if from != SQD || to != SQD {
		return nil
	}
	if mask&MaskMaxDestRead != 0 && attr.MaxDestRead != q.attr.MaxDestRead {
		return &AttrError{
			From: from, To: to, Attr: MaskMaxDestRead, Value: attr.MaxDestRead,
			Allowed: "the value given at the transition to RTR: what the responder remembers is not resized (R30); reset and connect again",
		}
	}
	const needsQuiet = MaskAV | MaskTimeout | MaskRetryCount | MaskRNRRetry | MaskMaxRead
	if mask&needsQuiet != 0 && !q.engine.Quiet() {
		return &StateError{Op: "modify " + (mask & needsQuiet).String(), State: from, Advice: "the send queue is not drained yet: wait for SQ_DRAINED"}
	}
	return nil
}

// enter does what a transition means for the engine.
func (q *QP) enter(from, to State, attr *Attr, mask AttrMask) {
	switch {
	case to == RTR:
		q.newEngine()
	case from == RTR && to == RTS:
		q.startSend(&attr.Tuning)
	case to == SQD && from == RTS:
		q.engine.Quiesce(true)
		q.sqNotify = mask&MaskSQDNotify != 0 && attr.SQDNotify
	case from == SQD && to == RTS:
		q.engine.Quiesce(false)
		q.sqNotify = false
	case from == SQD && to == SQD:
		if q.rc != nil {
			q.rc.SetRetry(q.attr.Timeout, q.attr.RetryCount, q.attr.RNRRetry)
			q.rc.SetMaxRead(int(q.attr.MaxRead))
		}
	}
	switch {
	case q.rc != nil:
		q.rc.SetAccess(q.attr.Access)
		q.rc.SetRNRTimer(q.attr.MinRNRTimer)
	case q.engine != nil:
		q.engine.SetAccess(q.attr.Access)
		if e, ok := q.engine.(udEngine); ok {
			e.SetQKey(q.qkey())
		}
	}
}

// Take implements wr.ReceiveSource for the queue pair's own receive queue.
func (q *QP) Take(r *wr.Receive) bool { return q.recv.take(r) }

// fail enters the error state by command: everything is flushed.
func (q *QP) fail() {
	if q.engine == nil { // nothing was sent yet; the engine only flushes
		q.newEngine()
	}
	if !q.engine.Failed() {
		q.engine.Fail(cq.StatusSuccess)
	}
	q.state = Err
	q.updateView()
}
