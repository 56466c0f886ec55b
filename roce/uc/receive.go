package uc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// receiver takes the peer's messages (§4.15).
type receiver struct {
	u        *UC
	expect   roce.PSN
	access   mr.Access
	pd       *mr.PD
	receives wr.ReceiveSource

	msg  message
	recv wr.Receive // valid if holds; a lost message leaves it to the next
	// holds says that recv has been taken from the source and not completed.
	holds bool

	pend        wr.Ring[placement]
	outstanding int
	spans       []mr.Span
}

// message is the one in progress; kind 0 is none.
type message struct {
	kind     wr.Traits // TraitSend or TraitWrite
	region   mr.Span   // of a WRITE
	length   uint64    // of a WRITE
	received uint64
}

// placement is an accepted packet whose bytes are on their way into memory.
type placement struct {
	done    bool
	outcome wr.Outcome
	receive bool // completes a receive, with wc
	wc      cq.Completion
}

func (r *receiver) init(u *UC, cfg *Config) {
	*r = receiver{u: u, expect: cfg.ExpectPSN & 0xFFFFFF, access: cfg.Access, pd: cfg.PD, receives: cfg.Receives}
	r.recv.Spans = make([]mr.Span, 0, max(cfg.MaxRecvSGE, 1))
}

// packet takes a SEND or WRITE packet. A gap loses the message in progress; the
// next that begins one is taken whatever its PSN.
func (r *receiver) packet(p *roce.Packet) wr.Work {
	t := wr.TraitsOf(p.Opcode)
	inOrder := p.PSN == r.expect
	begins := t&wr.TraitFirst != 0
	if !inOrder || begins || r.msg.kind == 0 {
		if r.msg.kind != 0 {
			r.lose()
		}
		if !begins {
			r.u.stats.DroppedPackets++
			return wr.Work{}
		}
	}
	r.expect = p.PSN.Add(1)
	if r.pend.Len() >= MaxPending || !r.takes(t, p) {
		r.lose()
		r.u.stats.DroppedPackets++
		return wr.Work{}
	}
	spans, ok := r.target(t, p)
	if !ok {
		return wr.Work{}
	}
	return r.place(t, p, spans)
}

// lose gives up the message in progress. Its receive waits for the next one.
func (r *receiver) lose() {
	r.msg = message{}
	r.u.stats.LostMessages++
}

// takes checks sequence, right and lengths, and gets a receive where one is
// needed.
func (r *receiver) takes(t wr.Traits, p *roce.Packet) bool {
	kind := t & (wr.TraitSend | wr.TraitWrite)
	if t&wr.TraitFirst == 0 && kind != r.msg.kind {
		return false
	}
	if kind == wr.TraitWrite && r.access&mr.RemoteWrite == 0 || p.CheckLength(int(r.u.mtu)) != nil {
		r.u.stats.Refused++
		return false
	}
	return !t.TakesReceive() || r.take()
}

// take gets the next receive, unless a lost message left one.
func (r *receiver) take() bool {
	if r.holds {
		return true
	}
	r.recv.Spans = r.recv.Spans[:0]
	r.holds = r.receives != nil && r.receives.Take(&r.recv)
	return r.holds
}

// target opens a message if the packet begins one and returns where its payload
// goes.
func (r *receiver) target(t wr.Traits, p *roce.Packet) ([]mr.Span, bool) {
	n := uint64(len(p.Payload))
	if t&wr.TraitFirst != 0 {
		r.msg = message{kind: t & (wr.TraitSend | wr.TraitWrite)}
		if t&wr.TraitWrite != 0 && !r.open(p.RETH) {
			return nil, false
		}
	}
	if t&wr.TraitSend != 0 {
		if r.msg.received+n > wr.SpanBytes(r.recv.Spans) {
			r.tooLong()
			return nil, false
		}
		r.spans = wr.Slice(r.spans[:0], r.recv.Spans, r.msg.received, n)
		return r.spans, true
	}
	left := r.msg.length - r.msg.received
	if n > left || (t&wr.TraitLast != 0) != (n == left) {
		r.u.stats.Refused++
		r.lose()
		return nil, false
	}
	to := r.msg.region
	to.Off, to.Len = to.Off+r.msg.received, uint32(n)
	r.spans = append(r.spans[:0], to)
	return r.spans, true
}

// open resolves the memory of a WRITE; without bytes none is needed (§4.11).
func (r *receiver) open(h roce.RETH) bool {
	r.msg.length = uint64(h.Len)
	if h.Len == 0 {
		return true
	}
	span, err := r.pd.Remote(h.RKey, h.VA, h.Len, mr.RemoteWrite)
	if err != nil || h.Len > wr.MaxMessage {
		r.u.stats.Refused++
		r.lose()
		return false
	}
	r.msg.region = span
	return true
}

// tooLong ends the connection: a message was longer than its receive (§4.6).
func (r *receiver) tooLong() {
	r.pend.Push(placement{done: true, receive: true, wc: cq.Completion{
		WRID: r.recv.ID, Opcode: cq.OpRecv, Status: cq.StatusLocalLength,
	}})
	r.holds, r.msg = false, message{}
	r.settle()
}

// place accepts the packet.
func (r *receiver) place(t wr.Traits, p *roce.Packet, spans []mr.Span) wr.Work {
	n := len(p.Payload)
	e := r.pend.Push(placement{done: n == 0})
	r.msg.received += uint64(n)
	if t&wr.TraitLast != 0 {
		if e.receive = r.holds && (t&wr.TraitSend != 0 || t&wr.TraitImm != 0); e.receive {
			e.wc = wr.ReceiveCompletion(t, p, r.recv.ID, uint32(r.msg.received))
			r.holds = false
		}
		r.msg = message{}
	}
	if n == 0 {
		r.settle()
		return wr.Work{}
	}
	r.outstanding++
	return wr.Work{Kind: wr.WorkPlace, Token: r.pend.Tail - 1, Spans: spans, Data: p.Payload}
}

// committed notes the end of a placement.
func (r *receiver) committed(i uint64, o wr.Outcome) {
	if !r.pend.Has(i) || r.pend.At(i).done {
		return
	}
	e := r.pend.At(i)
	e.done, e.outcome = true, o
	r.outstanding--
	r.settle()
}

// settle gives the completions of everything that is in memory, in order. What
// could not be written ends the connection.
func (r *receiver) settle() {
	for r.pend.Len() > 0 && r.pend.At(r.pend.Head).done {
		e := *r.pend.At(r.pend.Head)
		r.pend.Pop()
		if e.receive {
			r.finish(&e)
		} else if e.outcome != wr.Done {
			r.u.fail(cq.StatusLocalProtection)
		}
	}
	if r.u.Failed() && r.pend.Len() == 0 && r.holds {
		r.holds = false
		r.u.complete(&cq.Completion{WRID: r.recv.ID, Opcode: cq.OpRecv, Status: cq.StatusFlushed})
	}
}

// finish completes a receive.
func (r *receiver) finish(e *placement) {
	switch {
	case r.u.Failed():
		e.wc.Status, e.wc.Flags = cq.StatusFlushed, 0
	case e.outcome != wr.Done:
		e.wc.Status, e.wc.Flags = cq.StatusLocalProtection, 0
	}
	r.u.complete(&e.wc)
	if e.wc.Status != cq.StatusSuccess {
		r.u.fail(e.wc.Status)
	}
}
