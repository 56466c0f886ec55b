package rc

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Predict reports where the payload of p goes if p is what the connection expects
// next and the place follows from the connection's own state: a packet inside or
// at the end of a SEND or WRITE, or a READ response. Then Accept of p will ask for
// just that, so the bytes may be copied while their ICRC is being checked: a
// failed check leaves only bytes that the packet's next copy overwrites, and
// nothing is reported complete. Nothing changes. The spans are valid until the
// next call of a method of the RC.
func (c *RC) Predict(p *roce.Packet) ([]mr.Span, bool) {
	switch {
	case c.common.failed || len(p.Payload) == 0 || p.Opcode.Transport() != roce.RC:
		return nil, false
	case p.Opcode.IsResponse():
		return c.req.predict(p)
	default:
		return c.resp.predict(p)
	}
}

// predict is for packets of SENDs and WRITEs that are under way.
func (s *responder) predict(p *roce.Packet) ([]mr.Span, bool) {
	t := wr.TraitsOf(p.Opcode)
	if t == 0 || t&(wr.TraitFirst|wr.TraitImm|wr.TraitInv) != 0 || s.fault.set || wr.Extend(s.accepted, p.PSN) != 0 ||
		s.pend.Len() >= s.maxPending || !s.inSequence(t) || !s.allowed(p.Opcode, t) || !s.rightLength(p, t) {
		return nil, false
	}
	n := uint64(len(p.Payload))
	if t&wr.TraitWrite != 0 {
		return s.writeSpan(n), s.fitsWrite(t, n)
	}
	if s.msg.received+n > wr.SpanBytes(s.recv.Spans) {
		return nil, false
	}
	s.c.common.spans = wr.Slice(s.c.common.spans[:0], s.recv.Spans, s.msg.received, n)
	return s.c.common.spans, true
}

// predict is for READ responses.
func (r *requester) predict(p *roce.Packet) ([]mr.Span, bool) {
	if !r.started || r.una >= r.hi || wr.Extend(r.una, p.PSN) != 0 {
		return nil, false
	}
	if p.Opcode.Has(roce.HasAETH) && p.AETH.Syndrome.Kind() != roce.AckACK {
		return nil, false
	}
	w := r.q.At(r.ack)
	if w.Op != wr.OpRead || w.Discard {
		return nil, false
	}
	i := r.una - w.First
	off, n := w.Payload(i, r.c.common.mtu)
	if uint64(len(p.Payload)) != n || !r.legalAnswer(w, p.Opcode) {
		return nil, false
	}
	r.c.common.spans = wr.Slice(r.c.common.spans[:0], w.Spans, off, n)
	return r.c.common.spans, true
}

// Placed takes a packet whose payload was copied to where Predict said, right
// after, and whose ICRC was right: it is Accept and Commit in one.
func (c *RC) Placed(now mono.Time, p *roce.Packet) {
	if p.Opcode.IsRequest() && c.resp.pend.Len() == 0 {
		c.resp.placed(p)
		return
	}
	if w := c.Accept(now, p); w.Kind == wr.WorkPlace {
		c.Commit(now, w.Token, wr.Done, 0)
	}
}

// placed is messagePacket and its effect, for a packet behind which nothing
// waits.
func (s *responder) placed(p *roce.Packet) {
	t := wr.TraitsOf(p.Opcode)
	s.nak = nakNone
	s.msg.received += uint64(len(p.Payload))
	s.accepted++
	s.exec++
	s.wantAck = s.wantAck || p.AckReq
	if t&wr.TraitLast == 0 {
		return
	}
	s.msn = (s.msn + 1) & 0xFFFFFF
	if s.msg.holdsRecv {
		s.c.pending = append(s.c.pending, s.receiveCompletion(t, p))
	}
	s.msg = message{}
}
