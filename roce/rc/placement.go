package rc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// placement is a request packet that was accepted and whose effect may not be
// in memory yet. They take effect, for the peer and for the receiver, in order.
type placement struct {
	seq, npsn  uint64
	done       bool
	outcome    wr.Outcome
	message    bool // ends a message: counts in the MSN
	receive    bool // completes a receive, with wc
	invalidate bool // of wc.InvKey, before the completion
	remote     bool // the memory belongs to a remote key, not to a receive
	resource   bool // READ or atomic: res says which
	res        uint64
	wc         cq.Completion
}

// committed notes the end of placement or atomic i and lets whatever waited for
// it take effect.
func (s *responder) committed(i uint64, o wr.Outcome, result uint64) {
	if !s.pend.Has(i) {
		return
	}
	e := s.pend.At(i)
	if e.done {
		return
	}
	e.done, e.outcome = true, o
	s.outstanding--
	if e.resource {
		s.res[e.res%uint64(len(s.res))].result = result
	}
	s.settle()
}

// settle lets everything take effect that is complete and has nothing
// incomplete before it.
func (s *responder) settle() {
	for s.pend.Len() > 0 {
		e := s.pend.At(s.pend.Head)
		if !e.done {
			return
		}
		if s.c.common.failed {
			s.finishFailed(e)
		} else {
			s.effect(e)
		}
		s.pend.Pop()
	}
	if s.c.common.failed {
		s.flushReceive()
	}
}

// effect makes a placement visible: invalidation, MSN, completion, and the right
// to be acknowledged.
func (s *responder) effect(e *placement) {
	if s.fault.set && e.seq >= s.fault.seq {
		s.finishFailed(e) // accepted after the packet that failed
		return
	}
	if e.outcome != wr.Done {
		s.placeFailed(e)
		return
	}
	if e.invalidate && s.pd.InvalidateRemote(e.wc.InvKey) != nil {
		// The data is placed and the packet acknowledged, but it does not
		// count, and the connection ends (§4.10).
		e.wc.Status = cq.StatusRemoteInvalid
		s.c.pending = append(s.c.pending, e.wc)
		s.setFault(fault{set: true, syndrome: roce.SynACK, local: cq.StatusFlushed, seq: e.seq})
		return
	}
	if e.message {
		s.msn = (s.msn + 1) & 0xFFFFFF
	}
	s.exec = e.seq + e.npsn
	if e.resource {
		s.activate(e.res)
	}
	if e.receive {
		s.c.pending = append(s.c.pending, e.wc)
	}
}

// placeFailed turns a failure of memory into the NAK of §4.3.7.
func (s *responder) placeFailed(e *placement) {
	f := fault{set: true, syndrome: roce.SynNakOp, local: cq.StatusLocalProtection, seq: e.seq}
	if e.remote && e.outcome == wr.Revoked {
		f.syndrome, f.local = roce.SynNakAccess, cq.StatusLocalAccess
	}
	s.setFault(f)
	s.finishFailed(e)
}

// finishFailed completes the receive of a placement that no longer takes effect.
func (s *responder) finishFailed(e *placement) {
	if !e.receive {
		return
	}
	e.wc.Status, e.wc.Flags = cq.StatusFlushed, 0
	if s.fault.set && e.seq == s.fault.seq {
		e.wc.Status = s.fault.local
	}
	s.c.pending = append(s.c.pending, e.wc)
}

// fail notes that the expected packet is at fault. It is announced once
// everything before it has taken effect.
func (s *responder) fail(f fault) {
	f.seq = s.accepted
	s.setFault(f)
}

func (s *responder) setFault(f fault) {
	if !s.fault.set {
		s.fault = f
	}
	s.wantAck, s.nak = false, nakNone
}

// failEarly notes that the READ response at f.seq cannot be sent, and drops the
// answers that would follow it.
func (s *responder) failEarly(f fault) {
	f.set, f.early = true, true
	s.setFault(f)
	for i := range s.res {
		if r := &s.res[i]; r.active && r.end() > f.seq {
			r.active = false
			s.nactive--
		}
	}
}

// flushReceive completes the receive that an unfinished message holds: with the
// error if that message caused it, else flushed (§3.17).
func (s *responder) flushReceive() {
	if !s.msg.holdsRecv || s.pend.Len() > 0 {
		return
	}
	s.msg.holdsRecv = false
	wc := cq.Completion{
		WRID: s.recv.ID, Opcode: cq.OpRecv, Status: cq.StatusFlushed,
		QPN: s.c.common.lqpn, SrcQP: s.c.common.rqpn, Peer: s.c.common.peer,
	}
	if s.fault.set && !s.fault.early {
		wc.Status, wc.Syndrome = s.fault.local, s.fault.syndrome
	}
	s.c.pending = append(s.c.pending, wc)
}
