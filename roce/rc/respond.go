package rc

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// CNPInterval is the shortest time between two congestion notifications of a
// connection (§7.1).
const CNPInterval = 50 * time.Microsecond

type cnpState struct {
	owed bool
	next mono.Time
}

// drain emits responses: the answers of READs and atomics in PSN order, then
// one ACK or NAK for everything else. No ACK may overtake an answer that is
// still to come: it would tell the requester that the answer was lost (§4.4).
func (s *responder) drain(b *wr.Batch) (more bool) {
	if s.cnp.owed && b.Room() {
		s.emitCNP(b)
	}
	for s.nactive > 0 {
		for r := s.oldestActive(); r.active; {
			if !b.Room() {
				return true
			}
			if !s.emitReadRun(b, r) {
				s.emitAnswer(b, r)
			}
		}
	}
	if !b.Room() {
		return s.hasOutput()
	}
	s.emitAck(b)
	return false
}

// oldestActive is the resource whose answer comes next.
func (s *responder) oldestActive() *resource {
	var oldest *resource
	for i := range s.res {
		if r := &s.res[i]; r.active && (oldest == nil || r.first < oldest.first) {
			oldest = r
		}
	}
	return oldest
}

// emitAnswer appends the next packet of a READ's or atomic's answer.
func (s *responder) emitAnswer(b *wr.Batch, r *resource) {
	p := s.packet(b, roce.OpAtomicAck, r.first+r.next, roce.SynACK, r.msn)
	switch r.op {
	case roce.OpReadRequest:
		s.emitRead(b, p, r)
		return
	case roce.OpAtomicWrite:
		p.Opcode = roce.OpReadRespOnly
	default:
		p.AtomicAck = r.result
	}
	b.Add(p, 0)
	s.answered(r, r.end())
}

// emitRead appends one READ response (§4.8).
func (s *responder) emitRead(b *wr.Batch, p *roce.Packet, r *resource) {
	off := r.next * s.c.common.mtu
	n := min(r.length-min(off, r.length), s.c.common.mtu)
	p.Opcode = readOpcode(r.next == r.begin, r.next+1 == r.npsn)
	o := b.Add(p, int(n))
	if n > 0 {
		s.c.common.spans = append(s.c.common.spans[:0], r.span)
		b.Gather(o, s.c.common.spans, off, n)
		o.Token = tokenReadReply | (r.first+r.next)&tokenSeq
	}
	s.answered(r, r.first+r.next+1)
}

func readOpcode(begins, ends bool) roce.Opcode {
	switch {
	case begins && ends:
		return roce.OpReadRespOnly
	case begins:
		return roce.OpReadRespFirst
	case ends:
		return roce.OpReadRespLast
	default:
		return roce.OpReadRespMiddle
	}
}

// answered moves a resource's answer on to the sequence number end. What is
// answered needs no ACK of its own (§4.12).
func (s *responder) answered(r *resource, end uint64) {
	r.next = end - r.first
	if r.next == r.npsn {
		r.active = false
		s.nactive--
	}
	s.ackedEnd = max(s.ackedEnd, end)
	if s.ackedEnd >= s.exec && !s.dupAck { // H9: a duplicate gets its own ACK
		s.wantAck = s.wantAck && s.exec != s.accepted // what is on its way asks for its own
	}
}

// emitAck appends the ACK, NAK or RNR NAK that is due. A NAK also acknowledges
// everything before its packet, so it waits until that has taken effect.
func (s *responder) emitAck(b *wr.Batch) {
	settled := s.exec == s.accepted
	switch {
	case s.fault.set:
		if s.fault.early || s.exec == s.fault.seq {
			s.emitFault(b)
		}
	case s.nak == nakSeq && settled:
		s.nak = nakSeqSent
		s.c.common.stats.SeqNAKsSent++
		s.emit(b, s.exec, roce.SynNakSeq)
	case s.nak == nakRNR && settled:
		s.nak = nakRNRSent
		s.c.common.stats.RNRsSent++
		s.emit(b, s.exec, roce.RNR(s.rnrCode))
	case s.wantAck && (s.exec > s.ackedEnd || s.dupAck):
		s.emit(b, s.exec-1, roce.SynACK)
	}
}

// emitFault announces a fatal error, and enters the error state (§4.3).
func (s *responder) emitFault(b *wr.Batch) {
	if s.fault.syndrome != roce.SynACK {
		s.c.common.stats.FatalNAKsSent++
	}
	s.emit(b, s.fault.seq, s.fault.syndrome)
	s.c.req.fail(s.c.req.q.Tail, Cause{Status: s.fault.local, Syndrome: s.fault.syndrome, PSN: wr.Wire(s.fault.seq)})
}

// emit appends an acknowledge packet; it covers everything that has taken
// effect. While placements are in progress, what was owed stays owed.
func (s *responder) emit(b *wr.Batch, seq uint64, syn roce.Syndrome) {
	b.Add(s.packet(b, roce.OpAcknowledge, seq, syn, s.msn), 0)
	s.ackedEnd = max(s.ackedEnd, s.exec)
	s.wantAck = s.wantAck && s.exec != s.accepted
	s.dupAck = false
}

// packet fills the common part of a response.
func (s *responder) packet(b *wr.Batch, op roce.Opcode, seq uint64, syn roce.Syndrome, msn uint32) *roce.Packet {
	c := &s.c.common
	p := b.Scratch()
	*p = roce.Packet{
		Opcode: op, Mig: true, PKey: c.pkey, DestQP: c.rqpn, PSN: wr.Wire(seq), AETH: roce.AETH{Syndrome: syn, MSN: msn},
	}
	c.stats.Responses++
	return p
}

// emitCNP appends a congestion notification (§1.11).
func (s *responder) emitCNP(b *wr.Batch) {
	s.cnp.owed = false
	c := &s.c.common
	p := b.Scratch()
	*p = roce.Packet{Opcode: roce.OpCNP, BECN: true, PKey: 0xFFFF, DestQP: c.rqpn}
	c.stats.CNPsSent++
	b.Add(p, 0)
}

// fetched reports that a READ response's payload has been read. If it could not
// be, the peer gets a NAK in that response's place (§4.8).
func (s *responder) fetched(seq uint64, o wr.Outcome, held bool) {
	if held {
		s.held--
	}
	if o == wr.Done || s.c.common.failed {
		return
	}
	f := fault{syndrome: roce.SynNakOp, local: localFault(o), seq: seq}
	if o == wr.Revoked {
		f.syndrome = roce.SynNakAccess
	}
	s.failEarly(f)
}
