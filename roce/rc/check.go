package rc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// fault is a fatal error of the responder: what the peer is told, and how the
// receive in progress completes (§4.14).
type fault struct {
	set      bool
	syndrome roce.Syndrome
	local    cq.Status
	// seq is the packet at fault.
	seq uint64
	// early: a READ response failed, so requests after seq may have taken
	// effect already (§4.8).
	early bool
}

func invalidFault() fault {
	return fault{set: true, syndrome: roce.SynNakInvalid, local: cq.StatusLocalQPOperation}
}

func accessFault() fault {
	return fault{set: true, syndrome: roce.SynNakAccess, local: cq.StatusLocalAccess}
}

// acceptable applies the first rules of §4.3: opcode sequence, access flags,
// and a depth that is not 0.
func (s *responder) acceptable(op roce.Opcode, t wr.Traits) bool {
	return s.inSequence(t) && s.allowed(op, t) && (t != 0 || s.depth > 0)
}

// rightLength applies the length rules of §1.9, and bounds the length that a RETH
// announces.
func (s *responder) rightLength(p *roce.Packet, t wr.Traits) bool {
	if p.CheckLength(int(s.c.common.mtu)) != nil {
		return false
	}
	announces := t&(wr.TraitWrite|wr.TraitFirst) == wr.TraitWrite|wr.TraitFirst || p.Opcode == roce.OpReadRequest
	return !announces || p.RETH.Len <= MaxMessage
}

// inSequence is the rule of §4.5.
func (s *responder) inSequence(t wr.Traits) bool {
	switch s.msg.kind {
	case msgSend:
		return t&wr.TraitSend != 0 && t&wr.TraitFirst == 0
	case msgWrite:
		return t&wr.TraitWrite != 0 && t&wr.TraitFirst == 0
	default:
		return t == 0 || t&wr.TraitFirst != 0
	}
}

// allowed checks the queue pair's access flags: an operation that is not enabled
// is an invalid request, not an access error (§4.3).
func (s *responder) allowed(op roce.Opcode, t wr.Traits) bool {
	switch {
	case t&wr.TraitSend != 0:
		return true
	case t&wr.TraitWrite != 0 || op == roce.OpAtomicWrite:
		return s.access&mr.RemoteWrite != 0
	case op == roce.OpReadRequest:
		return s.access&mr.RemoteRead != 0
	case op == roce.OpCmpSwap || op == roce.OpFetchAdd:
		return s.access&mr.RemoteAtomic != 0
	}
	return false // FLUSH and reserved opcodes are not offered
}

// fitsWrite compares n bytes of a WRITE packet with what is left of the message:
// First and Middle must leave something, Last and Only nothing (§1.9, §4.11).
func (s *responder) fitsWrite(t wr.Traits, n uint64) bool {
	left := s.msg.length - s.msg.received
	if t&wr.TraitLast != 0 {
		return n == left
	}
	return n < left
}
