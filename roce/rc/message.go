package rc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// traits of the packets of SENDs and WRITEs, by the low five bits of the opcode.
type traits uint8

const (
	traitSend traits = 1 << iota
	traitWrite
	traitFirst // begins a message
	traitLast  // ends one
	traitImm
	traitInv
)

var messageTraits = [32]traits{
	roce.OpSendFirst:    traitSend | traitFirst,
	roce.OpSendMiddle:   traitSend,
	roce.OpSendLast:     traitSend | traitLast,
	roce.OpSendLastImm:  traitSend | traitLast | traitImm,
	roce.OpSendOnly:     traitSend | traitFirst | traitLast,
	roce.OpSendOnlyImm:  traitSend | traitFirst | traitLast | traitImm,
	roce.OpSendLastInv:  traitSend | traitLast | traitInv,
	roce.OpSendOnlyInv:  traitSend | traitFirst | traitLast | traitInv,
	roce.OpWriteFirst:   traitWrite | traitFirst,
	roce.OpWriteMiddle:  traitWrite,
	roce.OpWriteLast:    traitWrite | traitLast,
	roce.OpWriteLastImm: traitWrite | traitLast | traitImm,
	roce.OpWriteOnly:    traitWrite | traitFirst | traitLast,
	roce.OpWriteOnlyImm: traitWrite | traitFirst | traitLast | traitImm,
}

func traitsOf(op roce.Opcode) traits { return messageTraits[op&31] }

// isMessage reports whether op is a packet of a SEND or WRITE.
func isMessage(op roce.Opcode) bool { return traitsOf(op) != 0 }

// takesReceive reports whether the packet needs a receive work request that its
// message does not hold yet (§4.6, §4.7).
func (t traits) takesReceive() bool {
	if t&traitSend != 0 {
		return t&traitFirst != 0
	}
	return t&traitImm != 0
}

// messagePacket executes a checked packet of a SEND or WRITE.
func (s *responder) messagePacket(p *roce.Packet) Work {
	t := traitsOf(p.Opcode)
	spans, f := s.target(t, p)
	if f.set {
		s.fail(f)
		return Work{}
	}
	e := s.pend.push()
	*e = placement{seq: s.accepted, npsn: 1, done: len(p.Payload) == 0, remote: t&traitWrite != 0}
	s.msg.received += uint64(len(p.Payload))
	if t&traitLast != 0 {
		s.endMessage(e, t, p)
	}
	s.accepted++
	s.wantAck = s.wantAck || p.AckReq
	if e.done {
		s.settle()
		return Work{}
	}
	s.outstanding++
	return Work{Kind: WorkPlace, Token: tokenPlace | s.pend.last(), Spans: spans, Data: p.Payload}
}

// take gets the next receive work request.
func (s *responder) take() bool {
	s.recv.Spans = s.recv.Spans[:0]
	return s.receives != nil && s.receives.Take(&s.recv)
}

// target opens a message if the packet begins one and returns where its payload
// goes.
func (s *responder) target(t traits, p *roce.Packet) ([]mr.Span, fault) {
	n := uint64(len(p.Payload))
	if t&traitSend != 0 {
		if t&traitFirst != 0 {
			s.msg = message{kind: msgSend, holdsRecv: true}
		}
		return s.sendTarget(n)
	}
	if t&traitFirst != 0 {
		s.msg = message{kind: msgWrite, holdsRecv: s.msg.holdsRecv, length: uint64(p.RETH.Len)}
		if p.RETH.Len > 0 { // §4.11: without bytes neither key nor address matter
			span, err := s.pd.Remote(p.RETH.RKey, p.RETH.VA, p.RETH.Len, mr.RemoteWrite)
			if err != nil {
				return nil, accessFault()
			}
			s.msg.region = span
		}
	}
	to := s.msg.region
	to.Off, to.Len = to.Off+s.msg.received, uint32(n)
	s.spans = append(s.spans[:0], to)
	return s.spans, fault{}
}

// sendTarget scatters over the receive's spans; a message longer than they are
// is an invalid request (§4.6).
func (s *responder) sendTarget(n uint64) ([]mr.Span, fault) {
	if s.msg.received+n > wr.SpanBytes(s.recv.Spans) {
		return nil, fault{set: true, syndrome: roce.SynNakInvalid, local: cq.StatusLocalLength}
	}
	s.spans = wr.Slice(s.spans[:0], s.recv.Spans, s.msg.received, n)
	return s.spans, fault{}
}

// endMessage notes what happens once the last packet's bytes are in memory.
func (s *responder) endMessage(e *placement, t traits, p *roce.Packet) {
	e.message = true
	if s.msg.holdsRecv {
		e.receive = true
		e.invalidate = t&traitInv != 0
		e.wc = s.receiveCompletion(t, p)
	}
	s.msg = message{}
}

func (s *responder) receiveCompletion(t traits, p *roce.Packet) cq.Completion {
	wc := cq.Completion{
		WRID: s.recv.ID, Opcode: cq.OpRecv, QPN: s.c.common.lqpn, SrcQP: s.c.common.rqpn,
		ByteLen: uint32(s.msg.received), Peer: s.c.common.peer,
	}
	if t&traitWrite != 0 {
		wc.Opcode, wc.ByteLen = cq.OpRecvWriteImm, uint32(s.msg.length) // R7
	}
	if t&traitImm != 0 {
		wc.Flags |= cq.WithImm
		wc.Imm = p.Imm
	}
	if t&traitInv != 0 {
		wc.Flags |= cq.WithInv
		wc.InvKey = p.InvKey
	}
	if p.SE {
		wc.Flags |= cq.Solicited
	}
	return wc
}
