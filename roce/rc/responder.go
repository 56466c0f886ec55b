package rc

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// responder is the answering half (spec §4).
//
//	exec ≤ accepted
//
// accepted is the sequence number of the next request packet (ePSN); exec is
// how far requests have taken effect: all their bytes are in memory, so they may
// be acknowledged and their completions given. For host memory the two move
// together.
type responder struct {
	c *RC

	accepted, exec uint64
	msn            uint32 // messages completed at exec
	access         mr.Access
	pd             *mr.PD
	receives       wr.ReceiveSource
	maxPending     uint64

	msg         message
	recv        wr.Receive // taken by the message in progress, if msg.holdsRecv
	pend        wr.Ring[placement]
	outstanding int32 // placements and atomics not committed
	held        int32 // READ response payloads still being fetched

	depth   int32      // READs and atomics that the peer may have in flight
	nactive int32      // resources with something to send
	res     []resource // ring: the last of them; made at the first
	resNext uint64     // index of the next one

	rnrCode  uint8
	nak      nakState
	wantAck  bool   // an ACK is owed
	dupAck   bool   // even if nothing is new
	ackedEnd uint64 // end of what has been acknowledged
	fault    fault  // the fatal error waiting to be announced
	cnp      cnpState
}

// nakState is the answer owed to the expected packet (§4.2).
type nakState uint8

const (
	nakNone nakState = iota
	nakSeq           // NAK sequence error owed
	nakSeqSent
	nakRNR // RNR NAK owed
	nakRNRSent
)

// message is the SEND or WRITE in progress.
type message struct {
	kind      msgKind
	holdsRecv bool
	region    mr.Span // of a WRITE: what is left of its memory
	length    uint64  // of a WRITE: all of it
	received  uint64  // bytes so far
}

type msgKind uint8

const (
	msgNone msgKind = iota
	msgSend
	msgWrite
)

func (s *responder) init(c *RC, cfg *Config) {
	seq := wr.Sequence(cfg.ExpectPSN)
	*s = responder{
		c: c, accepted: seq, exec: seq, ackedEnd: seq, access: cfg.Access, pd: cfg.PD, receives: cfg.Receives,
		rnrCode: cfg.RNRTimerCode & 31, maxPending: uint64(cfg.MaxPending),
	}
	s.recv.Spans = make([]mr.Span, 0, cfg.MaxRecvSGE)
	s.depth = int32(cfg.MaxDestRead)
}

// request processes a request packet (§4.2).
func (s *responder) request(p *roce.Packet) wr.Work {
	if s.fault.set {
		s.c.common.stats.DroppedInError++
		return wr.Work{}
	}
	switch d := wr.Extend(s.accepted, p.PSN); {
	case d < 0:
		s.duplicate(p, d)
		return wr.Work{}
	case d > 0:
		s.c.common.stats.OutOfSequence++
		if s.nak == nakNone {
			s.nak = nakSeq
		}
		return wr.Work{}
	}
	if s.pend.Len() >= s.maxPending {
		s.c.common.stats.DroppedBusy++
		return wr.Work{}
	}
	s.nak = nakNone
	return s.expected(p)
}

// expected checks a packet with the expected PSN in the order of §4.3 and
// executes it. Keys and bounds are checked as it is executed.
func (s *responder) expected(p *roce.Packet) wr.Work {
	t := wr.TraitsOf(p.Opcode)
	if !s.acceptable(p.Opcode, t) {
		s.fail(invalidFault())
		return wr.Work{}
	}
	if t.TakesReceive() {
		if !s.take() {
			s.nak = nakRNR
			return wr.Work{}
		}
		s.msg.holdsRecv = true
	}
	if !s.rightLength(p, t) {
		s.fail(invalidFault())
		return wr.Work{}
	}
	switch {
	case t != 0:
		return s.messagePacket(p)
	case p.Opcode == roce.OpReadRequest:
		return s.read(p)
	default:
		return s.atomic(p)
	}
}

// hasOutput reports whether drain has something to say.
func (s *responder) hasOutput() bool {
	return s.nactive > 0 || s.wantAck || s.nak == nakSeq || s.nak == nakRNR || s.fault.set || s.cnp.owed
}

// congested notes a CE mark; a CNP is owed unless one left a moment ago.
func (s *responder) congested(now mono.Time) {
	if s.cnp.next.IsZero() || !now.Before(s.cnp.next) {
		s.cnp = cnpState{owed: true, next: now.Add(CNPInterval)}
	}
}

// abort drops what the error state leaves undone.
func (s *responder) abort() {
	s.nak, s.wantAck, s.cnp.owed, s.nactive = nakNone, false, false, 0
	for i := range s.res {
		s.res[i].active = false
	}
}
