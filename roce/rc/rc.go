package rc

import (
	"net/netip"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// RC is one reliable connection. The zero value is not usable: see [New].
// It is not safe for concurrent use; its owner holds a lock around every call.
type RC struct {
	req  requester
	resp responder

	common  common
	cause   Cause
	pending []cq.Completion
}

// common is what both halves need of the connection.
type common struct {
	lqpn, rqpn roce.QPN
	peer       netip.Addr
	pkey       uint16
	failed     bool // in the error state
	mtu        uint64
	stats      Stats
	spans      []mr.Span // of the last Work, or what was predicted last
}

// Cause says why a connection is in the error state.
type Cause struct {
	Status cq.Status
	// Syndrome is the NAK received or sent, if there was one, and PSN its
	// packet.
	Syndrome roce.Syndrome
	PSN      roce.PSN
}

// New returns a connection that answers requests at once (RTR) and sends after
// [RC.StartSend].
func New(cfg Config) *RC {
	cfg.fill()
	c := &RC{common: common{lqpn: cfg.LocalQPN, rqpn: cfg.RemoteQPN, peer: cfg.Peer, pkey: cfg.PKey, mtu: uint64(cfg.MTU)}}
	c.req.init(c, &cfg)
	c.resp.init(c, &cfg)
	return c
}

// StartSend lets the requester send (RTR→RTS).
func (c *RC) StartSend(s SendConfig) {
	s.fill(int(c.common.mtu))
	c.req.start(s)
}

// Post takes a work request. It returns [wr.ErrSendQueueFull] or a *[wr.RequestError]
// and then has taken nothing. In the error state the request is accepted and
// completes flushed (§3.17).
func (c *RC) Post(_ mono.Time, r *wr.Request) error {
	if err := c.req.post(r); err != nil {
		return err
	}
	if c.common.failed {
		c.req.flush()
	}
	return nil
}

// Accept takes a packet from the peer whose ICRC and address were right and
// returns what is to be done with memory for it. Nothing of p is kept, but
// Work.Data aliases its payload.
func (c *RC) Accept(now mono.Time, p *roce.Packet) wr.Work {
	switch {
	case c.common.failed:
		c.common.stats.DroppedInError++ // §3.17: no NAK from a QP in ERR
	case p.Opcode == roce.OpCNP:
		c.common.stats.CNPsReceived++
		c.req.win.congested(c.req.una, c.req.hi)
	case p.Opcode.Transport() != roce.RC:
		c.common.stats.DroppedOpcode++
	case p.Opcode.IsResponse():
		return c.req.response(now, p)
	case p.Opcode.IsRequest():
		return c.resp.request(p)
	default:
		c.common.stats.DroppedOpcode++
	}
	return wr.Work{}
}

// Commit reports that the memory work with this token has ended. result is the
// original value of an atomic.
func (c *RC) Commit(_ mono.Time, token uint64, o wr.Outcome, result uint64) {
	switch token &^ tokenSeq {
	case tokenRead:
		c.req.committed(token&tokenSeq, o)
	case tokenPlace:
		c.resp.committed(token&tokenSeq, o, result)
	}
}

// Hold reports that the spans of a packet could not be read at once. The
// requester's timer stands still until [RC.Fetched], since the packet has not
// left.
func (c *RC) Hold(token uint64) {
	switch token &^ tokenSeq {
	case tokenSend:
		c.req.held++
	case tokenReadReply:
		c.resp.held++
	}
}

// Fetched reports that the spans of a packet have been read; held says whether
// [RC.Hold] was called for it.
func (c *RC) Fetched(now mono.Time, token uint64, o wr.Outcome, held bool) {
	switch token &^ tokenSeq {
	case tokenSend:
		c.req.fetched(now, token&tokenSeq, o, held)
	case tokenReadReply:
		c.resp.fetched(token&tokenSeq, o, held)
	}
}

// Drain appends the packets that may leave now and reports whether it stopped
// only because the batch is full. Responses come before requests.
func (c *RC) Drain(now mono.Time, b *wr.Batch) (more bool) {
	if c.common.failed {
		return false
	}
	more = c.resp.drain(b)
	if c.common.failed { // the NAK that announces the error has just been emitted
		return more
	}
	return c.req.drain(now, b) || more
}

// HasOutput reports whether Drain might give a packet. It may err on the side
// of true.
func (c *RC) HasOutput() bool {
	return !c.common.failed && (c.resp.hasOutput() || c.req.hasOutput())
}

// ReadsPending reports whether READ responses wait to be fetched. To keep reads
// in order with what follows them (§3.8), drain before accepting a later
// request.
func (c *RC) ReadsPending() bool { return c.resp.nactive > 0 }

// Missing reports whether packets of the peer's were dropped because one before them
// has not come: requests, or answers to our READs (§3.10).
func (c *RC) Missing() bool {
	return c.resp.nak == nakSeq || c.resp.nak == nakSeqSent || c.req.seqErr
}

// Expire fires the timers that are due at now.
func (c *RC) Expire(now mono.Time) {
	if !c.common.failed {
		c.req.expire(now)
	}
}

// Deadline returns when Expire wants to be called next; 0 is never.
func (c *RC) Deadline() mono.Time {
	if c.common.failed {
		return 0
	}
	return c.req.deadline()
}

// Congested reports that a data packet of the peer carried the CE mark; a CNP
// is owed, at most one every [CNPInterval] (§7.2.1).
func (c *RC) Congested(now mono.Time) { c.resp.congested(now) }

// Discard has nothing more of the answers to request id go into its memory; it
// completes as if it did. It reports whether nothing is on its way there.
func (c *RC) Discard(id uint64) (still bool) {
	still = true
	for i := c.req.q.Head; i < c.req.q.Tail; i++ {
		if w := c.req.q.At(i); w.ID == id {
			w.Discard = true
			still = still && w.Busy == 0
		}
	}
	return still
}

// Completions returns what has finished since the last [RC.ClearCompletions],
// in order. It is valid until then.
func (c *RC) Completions() []cq.Completion { return c.pending }

// ClearCompletions forgets the completions that were taken.
func (c *RC) ClearCompletions() { c.pending = c.pending[:0] }

// Trim gives back the memory of queues that are empty. It changes nothing else, and
// what comes next takes memory anew.
func (c *RC) Trim() {
	c.req.q.Trim()
	c.resp.pend.Trim()
	if len(c.pending) == 0 {
		c.pending = nil
	}
}

// Fail moves the connection to the error state: what is outstanding completes
// flushed, the oldest request with the status given if that is not success.
func (c *RC) Fail(status cq.Status) {
	if status == cq.StatusSuccess {
		status = cq.StatusFlushed
	}
	c.req.fail(c.req.ack, Cause{Status: status})
}

// Failed reports whether the connection is in the error state.
func (c *RC) Failed() bool { return c.common.failed }

// Cause says what led to the error state.
func (c *RC) Cause() Cause { return c.cause }

// Idle reports whether no placement or fetch is in progress. A failed
// connection's buffers are free once it is idle.
func (c *RC) Idle() bool {
	return c.req.q.Len() == 0 && c.req.held == 0 && c.resp.held == 0 && c.resp.outstanding == 0
}

// InFlight returns what requests weigh that were sent and are unanswered, in the
// measure of [wr.PacketCost], READs with their answers. What is to be sent again
// does not count, nor does anything where no timer sees to an answer.
func (c *RC) InFlight() uint64 { return c.req.inFlight() }

// Quiesce stops (or resumes) starting work requests (SQD); what was begun is
// finished.
func (c *RC) Quiesce(on bool) { c.req.quiesced = on }

// Quiet reports whether nothing of the requester is unacknowledged.
func (c *RC) Quiet() bool { return c.req.quiet() }

// Outstanding returns the number of posted requests that have not completed.
func (c *RC) Outstanding() int { return c.req.q.Len() }

// SetAccess changes what the peer may do, for packets accepted from now on.
func (c *RC) SetAccess(a mr.Access) { c.resp.access = a }

// SetRNRTimer changes the timer code of RNR NAKs.
func (c *RC) SetRNRTimer(code uint8) { c.resp.rnrCode = code & 31 }

// SetRetry changes timeout and retry counts of the requester (SQD→SQD).
func (c *RC) SetRetry(timeout, retry, rnrRetry uint8) { c.req.setRetry(timeout, retry, rnrRetry) }

// SetMaxRead changes the initiator depth (SQD→SQD).
func (c *RC) SetMaxRead(n int) { c.req.maxRead = int32(n) }

// fail enters the error state without touching the queues.
func (c *RC) fail(why Cause) {
	if !c.common.failed {
		c.common.failed, c.cause = true, why
		c.resp.abort()
		c.resp.settle()
	}
}
