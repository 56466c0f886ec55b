package rc

import (
	"math"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

// requester is the sending half: it owns the send queue and everything between
// a posted work request and its completion (spec §3).
//
//	head ≤ ack ≤ cur ≤ tail         indexes of requests
//	       una ≤ send ≤ next        sequence numbers of packets
//
// Requests before ack are answered on the wire and wait only for their data to
// be in memory; una lies in request ack, send in request cur. hi is the largest
// send has been.
type requester struct {
	c *RC
	q wr.SendQueue

	una, send, hi, next uint64
	ack, cur            uint64
	nextCost            uint64

	maxRead, rdOut int32
	readChunk      uint64 // PSNs of the largest READ request
	ansStart       uint64 // where the answer of a READ asked for again begins
	uncommitted    int32  // placements in progress
	held           int32  // packets whose payload is still being fetched

	win      window
	rtt      roundTrip
	timer    retryTimer
	probe    probe
	ackEvery int32
	sinceAck int32

	started, quiesced bool
	seqErr            bool // an implied NAK is being repaired (§3.10)
	nakDone           bool // a NAK for nakAt has been acted on
	failStatus        cq.Status
	failIndex         uint64 // the request that failed, if failStatus is not success
	nakAt             uint64

	word [8]byte
}

func (r *requester) init(c *RC, cfg *Config) {
	r.c = c
	r.q.Init(cfg.SendQueue, cfg.MaxSendSGE)
	r.start(cfg.Send)
	r.started = false
}

func (r *requester) start(s SendConfig) {
	seq := wr.Sequence(s.FirstPSN)
	r.una, r.send, r.hi, r.next = seq, seq, seq, seq
	r.maxRead, r.ackEvery = int32(s.MaxRead), int32(min(s.AckEvery, math.MaxInt32))
	r.win.init(&s, r.c.common.mtu)
	r.timer.init(&s)
	// A READ is asked for in parts, so that no more comes back at once than
	// the window lets out.
	r.readChunk = readPart(min(r.win.max, r.win.maxBytes/(r.c.common.mtu+wr.PacketCost)))
	r.started = true
}

// readPart is the size in packets of the parts of a long READ: a quarter of the window.
// Lengths are mostly powers of two, of which no small rest is to be left, so large parts
// are multiples of 64. At least three fit into the window.
func readPart(window uint64) uint64 {
	n := window / 4
	if n < 64 {
		return max(1, n)
	}
	return (n + 32) &^ 63
}

// post queues a work request and gives it its PSNs.
func (r *requester) post(rq *wr.Request) error {
	if r.q.Full() {
		return wr.ErrSendQueueFull
	}
	n, err := r.check(rq)
	if err != nil {
		return err
	}
	w := r.q.Push(rq)
	w.Length, w.NPSN = uint32(n), 1
	if !rq.Op.Atomic() {
		w.NPSN = wr.Packets(n, r.c.common.mtu)
	}
	w.First, w.Base = r.next, r.nextCost
	r.next = w.End()
	r.nextCost = w.Cost(uint64(w.NPSN), r.c.common.mtu)
	return nil
}

// check returns the message's length.
func (r *requester) check(rq *wr.Request) (uint64, error) {
	n, err := rq.Check(r.q.MaxSpans())
	if err == nil && rq.Op.TakesRead() && r.started && r.maxRead == 0 {
		err = &wr.RequestError{Op: rq.Op, Reason: "the connection was made without READs and atomics (initiator depth 0, §3.7)"}
	}
	return n, err
}

// acked is the window cost of everything acknowledged.
func (r *requester) acked() uint64 {
	if r.ack == r.q.Tail {
		return r.nextCost
	}
	w := r.q.At(r.ack)
	return w.Cost(r.una-w.First, r.c.common.mtu)
}

// inFlight is the window cost of what was sent and has not been answered, as far
// as it will be sent again or answered without anybody's doing.
func (r *requester) inFlight() uint64 {
	if r.c.common.failed || r.timer.full == 0 || r.send == r.una || r.silent() {
		return 0
	}
	sent := r.nextCost
	if r.cur != r.q.Tail {
		w := r.q.At(r.cur)
		sent = w.Cost(r.send-w.First, r.c.common.mtu)
	}
	return sent - r.acked()
}

func (r *requester) quiet() bool { return r.una == r.hi && r.uncommitted == 0 && r.held == 0 }

func (r *requester) hasOutput() bool {
	if !r.started || !r.timer.rnrUntil.IsZero() {
		return false
	}
	return r.probe.owed() || r.probe.state != probeSent && r.send < r.next
}

// rewind goes back to the oldest unanswered packet.
func (r *requester) rewind() {
	r.send, r.cur, r.rdOut, r.sinceAck = r.una, r.ack, 0, 0
	r.probe.state = probeNone
	r.rtt.cancel()
}

// progress follows every advance of una from the given value. It tells if the answer is
// a NAK, an RNR NAK or an implied NAK, which is acted on next.
func (r *requester) progress(now mono.Time, from uint64, tells bool) {
	if r.una == from {
		return
	}
	r.c.common.stats.Acknowledged += r.una - from
	r.seqErr, r.nakDone = false, false
	r.win.acked(r.una-from, r.hi-from)
	if took, ok := r.rtt.acked(r.una, now); ok {
		r.win.measured(r.una-r.rtt.from(), took, r.rtt.least)
	}
	r.judgeProbe(tells)
	if r.send < r.una {
		r.send = r.una
	}
	r.hi = max(r.hi, r.send)
	for r.cur < r.q.Tail && r.q.At(r.cur).End() <= r.send {
		r.cur++
	}
	r.timer.progress()
	if r.una < r.hi {
		r.arm(now)
	} else {
		r.timer.stop()
	}
	r.retire()
}

// lost goes back to the oldest unanswered packet, which did not arrive, and makes
// the window smaller.
func (r *requester) lost() {
	if long, ok := r.rtt.long(); ok {
		r.win.blame(long)
	}
	r.win.lost()
	r.rewind()
}

// arm starts a new period of waiting for an answer.
func (r *requester) arm(now mono.Time) {
	d := r.timer.full
	if !r.timer.fixed {
		d = r.rtt.timeout(d, r.win.calm())
	}
	r.timer.arm(now, d)
}

// retire completes the requests that are answered and in memory, in order.
func (r *requester) retire() {
	for r.q.Head < r.ack {
		w := r.q.At(r.q.Head)
		if w.Busy > 0 {
			return
		}
		r.complete(w, cq.StatusSuccess)
	}
}

// complete gives the completion of the oldest request and frees its slot. An
// error is never silent (§3.16).
func (r *requester) complete(w *wr.WQE, status cq.Status) {
	if w.Flags&wr.Signaled != 0 || status != cq.StatusSuccess {
		done := cq.Completion{
			WRID: w.ID, Status: status, Opcode: w.Op.Completion(), QPN: r.c.common.lqpn, SrcQP: r.c.common.rqpn,
			ByteLen: w.Length, Peer: r.c.common.peer, RemoteAddr: w.RemoteAddr, RKey: w.RKey,
		}
		if status != cq.StatusSuccess {
			done.ByteLen = r.arrived(w)
			if status != cq.StatusFlushed {
				done.Syndrome = r.c.cause.Syndrome
			}
		}
		r.c.pending = append(r.c.pending, done)
	}
	r.q.Pop()
}

// arrived is how many bytes of a request that failed are known to be where they
// belong: acknowledged, or of a READ placed. Of a READ whose memory failed, none.
func (r *requester) arrived(w *wr.WQE) uint32 {
	if r.una <= w.First || r.failStatus == cq.StatusLocalProtection || r.failStatus == cq.StatusLocalQPOperation {
		return 0
	}
	return uint32(min((r.una-w.First)*r.c.common.mtu, uint64(w.Length)))
}

// fail puts the connection into the error state because of request i, if there is
// one with that index.
func (r *requester) fail(i uint64, why Cause) {
	if r.c.common.failed {
		return
	}
	r.c.fail(why)
	if r.q.Has(i) { // a request posted later is not at fault
		r.failIndex, r.failStatus = i, why.Status
	}
	r.flush()
}

// flush completes everything in the error state: what was acknowledged keeps its
// success, the request at fault gets its status, the rest is flushed (§3.17). A
// request whose data is still on its way into memory holds the queue up until it
// has arrived: after the completion no byte may land.
func (r *requester) flush() {
	for r.q.Head < r.q.Tail {
		w := r.q.At(r.q.Head)
		if w.Busy > 0 {
			return
		}
		status := cq.StatusFlushed
		switch {
		case r.failStatus != cq.StatusSuccess && r.q.Head == r.failIndex:
			status = r.failStatus
		case r.q.Head < r.ack:
			status = cq.StatusSuccess
		}
		r.complete(w, status)
	}
	r.ack, r.cur = r.q.Tail, r.q.Tail
}

// committed reports that READ or atomic data of request i is in memory.
func (r *requester) committed(i uint64, o wr.Outcome) {
	if !r.q.Has(i) {
		return
	}
	w := r.q.At(i)
	if w.Busy == 0 {
		return
	}
	w.Busy--
	r.uncommitted--
	switch {
	case r.c.common.failed:
		r.flush()
	case o != wr.Done:
		r.fail(i, Cause{Status: localFault(o)})
	default:
		r.retire()
	}
}

// fetched reports that the payload of a packet of request i has been read.
func (r *requester) fetched(now mono.Time, i uint64, o wr.Outcome, held bool) {
	if held {
		r.held--
		if r.held == 0 && r.una < r.hi && !r.c.common.failed {
			r.timer.since = now // the packets leave only now
			r.arm(now)
		}
	}
	if o != wr.Done && r.q.Has(i) {
		r.fail(i, Cause{Status: localFault(o)})
	}
}

// localFault is the status of local memory that could not be used.
func localFault(o wr.Outcome) cq.Status {
	if o == wr.Revoked {
		return cq.StatusLocalProtection
	}
	return cq.StatusLocalQPOperation
}
