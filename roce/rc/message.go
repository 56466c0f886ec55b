package rc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// messagePacket executes a checked packet of a SEND or WRITE.
func (s *responder) messagePacket(p *roce.Packet) wr.Work {
	t := wr.TraitsOf(p.Opcode)
	spans, f := s.target(t, p)
	if f.set {
		s.fail(f)
		return wr.Work{}
	}
	e := s.pend.Push(placement{seq: s.accepted, npsn: 1, done: len(p.Payload) == 0, remote: t&wr.TraitWrite != 0})
	s.msg.received += uint64(len(p.Payload))
	if t&wr.TraitLast != 0 {
		s.endMessage(e, t, p)
	}
	s.accepted++
	s.wantAck = s.wantAck || p.AckReq
	if e.done {
		s.settle()
		return wr.Work{}
	}
	s.outstanding++
	return wr.Work{Kind: wr.WorkPlace, Token: tokenPlace | (s.pend.Tail - 1), Spans: spans, Data: p.Payload}
}

// take gets the next receive work request.
func (s *responder) take() bool {
	s.recv.Spans = s.recv.Spans[:0]
	return s.receives != nil && s.receives.Take(&s.recv)
}

// target opens a message if the packet begins one and returns where its payload
// goes.
func (s *responder) target(t wr.Traits, p *roce.Packet) ([]mr.Span, fault) {
	n := uint64(len(p.Payload))
	if t&wr.TraitSend != 0 {
		if t&wr.TraitFirst != 0 {
			s.msg = message{kind: msgSend, holdsRecv: true}
		}
		return s.sendTarget(n)
	}
	if t&wr.TraitFirst != 0 {
		s.msg = message{kind: msgWrite, holdsRecv: s.msg.holdsRecv, length: uint64(p.RETH.Len)}
		if p.RETH.Len > 0 { // §4.11: without bytes neither key nor address matter
			span, err := s.pd.Remote(p.RETH.RKey, p.RETH.VA, p.RETH.Len, mr.RemoteWrite)
			if err != nil {
				return nil, accessFault()
			}
			s.msg.region = span
		}
	}
	if !s.fitsWrite(t, n) { // after the key (§4.3)
		return nil, invalidFault()
	}
	return s.writeSpan(n), fault{}
}

// writeSpan is where the next n bytes of the WRITE under way go.
func (s *responder) writeSpan(n uint64) []mr.Span {
	to := s.msg.region
	to.Off, to.Len = to.Off+s.msg.received, uint32(n)
	s.c.common.spans = append(s.c.common.spans[:0], to)
	return s.c.common.spans
}

// sendTarget scatters over the receive's spans; a message longer than they are
// is an invalid request (§4.6).
func (s *responder) sendTarget(n uint64) ([]mr.Span, fault) {
	if s.msg.received+n > wr.SpanBytes(s.recv.Spans) {
		return nil, fault{set: true, syndrome: roce.SynNakInvalid, local: cq.StatusLocalLength}
	}
	s.c.common.spans = wr.Slice(s.c.common.spans[:0], s.recv.Spans, s.msg.received, n)
	return s.c.common.spans, fault{}
}

// endMessage notes what happens once the last packet's bytes are in memory.
func (s *responder) endMessage(e *placement, t wr.Traits, p *roce.Packet) {
	e.message = true
	if s.msg.holdsRecv {
		e.receive = true
		e.invalidate = t&wr.TraitInv != 0
		e.wc = s.receiveCompletion(t, p)
	}
	s.msg = message{}
}

func (s *responder) receiveCompletion(t wr.Traits, p *roce.Packet) cq.Completion {
	c := &s.c.common
	wc := wr.ReceiveCompletion(t, p, s.recv.ID, uint32(s.msg.received))
	wc.QPN, wc.SrcQP, wc.Peer = c.lqpn, c.rqpn, c.peer
	if t&wr.TraitWrite != 0 {
		wc.ByteLen = uint32(s.msg.length) // R7
	}
	return wc
}
