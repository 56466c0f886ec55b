package qp

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Lock takes the queue pair's lock for the NIC.
func (q *QP) Lock() { q.mu.Lock() }

// Unlock gives it back.
func (q *QP) Unlock() { q.mu.Unlock() }

// Gen returns the generation: it changes with every RESET and with Close. Locked.
func (q *QP) Gen() uint32 { return q.gen }

// Accept gives a packet, checked up to its ICRC (§1.13), to the engine. v is the
// view it was checked against; when that is outdated the packet is dropped and
// ok is false. Locked.
func (q *QP) Accept(now mono.Time, p *roce.Packet, v *View) (w wr.Work, ok bool) {
	if q.engine == nil || q.view.Load() != v {
		return wr.Work{}, false
	}
	if !q.commEst && (q.state == RTR || q.cfg.Watch != nil) && p.Opcode.IsRequest() && p.PSN == q.attr.RecvPSN {
		q.established()
	}
	switch {
	case q.rc != nil:
		return q.rc.Accept(now, p), true
	case q.cfg.Type == UC:
		return q.engine.(ucEngine).Accept(p), true
	default:
		return wr.Work{}, false
	}
}

// Placed takes a packet whose payload lies where Predict said. Locked.
func (q *QP) Placed(now mono.Time, p *roce.Packet) { q.rc.Placed(now, p) }

// Missing reports whether packets of the peer's were dropped because one before them
// has not come. Locked.
func (q *QP) Missing() bool { return q.rc != nil && q.rc.Missing() }

// Predict reports where the payload of p goes if p is what a reliable connection
// expects next, see rc.RC.Predict. Locked.
func (q *QP) Predict(p *roce.Packet, v *View) ([]mr.Span, bool) {
	if q.rc == nil || q.view.Load() != v {
		return nil, false
	}
	return q.rc.Predict(p)
}

// Follow reports where the packets go that continue p, which Placed took right before,
// see rc.RC.Follow. Locked.
func (q *QP) Follow(p *roce.Packet, v *View, n int) (to mr.Span, k int) {
	if q.rc == nil || q.view.Load() != v {
		return mr.Span{}, 0
	}
	return q.rc.Follow(p, n)
}

// Followed takes k packets that lie where Follow said, right after it. Locked.
func (q *QP) Followed(now mono.Time, p *roce.Packet, k int, ackReq bool) {
	q.rc.Followed(now, p, k, ackReq)
}

// Coming returns how many bytes the peer surely has yet to send, see rc.RC.Coming.
// Locked.
func (q *QP) Coming() uint64 {
	if q.rc == nil {
		return 0
	}
	return q.rc.Coming()
}

// AcceptDatagram gives a datagram, checked likewise, to the engine of a datagram
// queue pair. Locked.
func (q *QP) AcceptDatagram(p *roce.Packet, v *View, from *Arrival) (w wr.Work, ok bool) {
	e, ok := q.engine.(udEngine)
	if !ok || q.view.Load() != v {
		return wr.Work{}, false
	}
	return e.Accept(p, from.Src, &from.Network), true
}

// Commit passes the end of a placement to the engine, unless the queue pair was
// reset since. Locked.
func (q *QP) Commit(now mono.Time, gen uint32, token uint64, o wr.Outcome, result uint64) {
	switch {
	case gen != q.gen:
	case q.rc != nil:
		q.rc.Commit(now, token, o, result)
	case q.engine != nil:
		q.engine.Commit(now, token, o, result)
	}
}

// Fetched passes the end of a fetch to the engine, likewise. After a failure there
// is something to say, so the queue pair is drained once more. Locked.
func (q *QP) Fetched(now mono.Time, gen uint32, token uint64, o wr.Outcome, held bool) {
	if o != wr.Done {
		q.dirty = true
	}
	switch {
	case gen != q.gen:
	case q.rc != nil:
		q.rc.Fetched(now, token, o, held)
	case q.engine != nil:
		q.engine.Fetched(now, token, o, held)
	}
}

// Hold tells the engine that a packet's payload is fetched later. Locked.
func (q *QP) Hold(token uint64) {
	if q.engine != nil {
		q.engine.Hold(token)
	}
}

// ReadsPending reports whether READ responses wait that are to be fetched before
// a later request takes effect (§3.8). Locked.
func (q *QP) ReadsPending() bool { return q.rc != nil && q.rc.ReadsPending() }

// Congested notes that a packet of the peer carried the CE mark (§7.2). Locked.
func (q *QP) Congested(now mono.Time) {
	if q.rc != nil {
		q.rc.Congested(now)
	}
}

// Discard has nothing more of the answers to a READ or atomic with this ID go into
// local memory, see rc.RC.Discard. It may be called from any goroutine.
func (q *QP) Discard(id uint64) (still bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rc == nil || q.rc.Discard(id)
}

// Expire fires the timers that are due. Locked.
func (q *QP) Expire(now mono.Time) {
	if q.rc != nil {
		q.rc.Expire(now)
	}
}

// InFlight returns what is unanswered of a reliable connection, see rc.RC.InFlight.
// Locked.
func (q *QP) InFlight() uint64 {
	if q.rc == nil {
		return 0
	}
	return q.rc.InFlight()
}

// Deadline returns when Expire wants to be called; 0 is never. Locked.
func (q *QP) Deadline() mono.Time {
	if q.rc == nil {
		return 0
	}
	return q.rc.Deadline()
}

// Fail moves a live connection to the error state, its oldest request completing
// with status. Locked; drain afterwards.
func (q *QP) Fail(status cq.Status) {
	if q.engine != nil && !q.engine.Failed() {
		q.engine.Fail(status)
	}
}

// BeginDrain makes the caller the one that drains, or reports that somebody else
// is and will look again when done. Locked.
func (q *QP) BeginDrain() bool {
	if q.draining {
		q.dirty = true
		return false
	}
	q.draining, q.dirty = true, false
	return true
}

// Drain appends packets that may leave now to b, as drain number drain, and takes
// over what has completed. more says that it stopped because b is full. Locked,
// between BeginDrain and EndDrain.
func (q *QP) Drain(now mono.Time, b *wr.Batch, drain uint64) (more bool) {
	if q.engine == nil {
		return false
	}
	if q.rc != nil {
		more = q.rc.Drain(now, b)
	} else {
		more = q.engine.Drain(now, b)
	}
	q.Collect(drain, !more || endsInRequest(b))
	return more
}

// Collect takes over what has completed. With answered the ACKs of all of it are
// in drain number drain or earlier ones. Locked, by the drainer.
func (q *QP) Collect(drain uint64, answered bool) {
	if q.engine == nil {
		return
	}
	q.done.collect(q.engine)
	if answered {
		q.done.seal(drain)
	}
}

// endsInRequest: responses come before requests, so a request at the end says
// that all responses are there.
func endsInRequest(b *wr.Batch) bool {
	n := b.Len()
	return n > 0 && roce.Opcode(b.At(n - 1).Header()[0]).IsRequest()
}

// Publish shows what has completed, given that all packets of drains up to left
// have left, and does what follows from the state reached: the receive queue is
// flushed in the error state, events are raised. Locked, by the drainer.
func (q *QP) Publish(left uint64) {
	if q.engine == nil {
		return
	}
	if q.rc == nil { // here sends complete when their payload has been read
		q.done.collect(q.engine)
	}
	if !q.done.publish(&q.cfg, left) {
		q.overrun()
	}
	if q.engine.Failed() {
		q.announce()
		if q.engine.Idle() && len(q.engine.Completions()) == 0 && q.done.empty() {
			q.flushReceives()
		}
	}
	if q.sqNotify && q.engine.Quiet() {
		q.sqNotify = false
		q.raise(EventSQDrained)
	}
}

// EndDrain ends the caller's part; again asks it to begin anew because somebody
// came meanwhile or more was left. Locked.
func (q *QP) EndDrain(more bool) (again bool) {
	again = more || q.dirty || q.engine != nil && len(q.engine.Completions()) > 0
	q.draining, q.dirty = false, false
	return again
}

// overrun: a sink lost a completion, so nobody can trust the rest.
func (q *QP) overrun() {
	if !q.engine.Failed() {
		q.engine.Fail(cq.StatusSuccess)
	}
	q.raise(EventCQErr)
}

// announce follows the engine into the error state, once.
func (q *QP) announce() {
	if q.announced {
		return
	}
	q.announced = true
	byItself := q.state != Err
	q.state = Err
	q.updateView()
	why := q.engine.Cause()
	if byItself {
		q.tell(Event{Type: EventQPFatal, QPN: q.cfg.QPN, Cause: why})
	}
	// A failed request tells by its completion. What the peer asked for, or
	// local memory that failed under it, has none.
	if byItself && (q.rc != nil && q.rc.Stats().FatalNAKsSent > 0 || why.Syndrome == roce.SynACK) {
		q.cfg.Events.put(Event{Type: EventQPFatal, QPN: q.cfg.QPN, Cause: why})
	}
}

// flushReceives completes all receives in order (§3.17): no byte can land in
// their buffers any more.
func (q *QP) flushReceives() {
	if q.cfg.SRQ != nil {
		if !q.flushed {
			q.flushed = true
			q.raise(EventLastWQE)
		}
		return
	}
	if q.recv.len() == 0 {
		return
	}
	r := wr.Receive{Spans: make([]mr.Span, 0, q.cfg.MaxRecvSGE)}
	ok := true
	for q.recv.take(&r) {
		ok = q.cfg.RecvSink.Complete(&cq.Completion{
			WRID: r.ID, Status: cq.StatusFlushed, Opcode: cq.OpRecv, QPN: q.cfg.QPN, Peer: q.attr.AV.Addr,
		}) && ok
	}
	if !ok {
		q.raise(EventCQErr)
	}
}

// established notes the first request of the peer (§5.12). Verbs make an event of
// it in RTR alone.
func (q *QP) established() {
	q.commEst = true
	if q.state == RTR {
		q.raise(EventCommEst)
	}
	q.tell(Event{Type: EventCommEst, QPN: q.cfg.QPN})
}

// tell informs who watches.
func (q *QP) tell(e Event) {
	if q.cfg.Watch != nil {
		q.cfg.Watch(e)
	}
}

func (q *QP) raise(t EventType) { q.cfg.Events.put(Event{Type: t, QPN: q.cfg.QPN}) }
