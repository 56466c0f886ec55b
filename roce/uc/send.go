package uc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sender numbers and emits request packets.
type sender struct {
	wr.Emitter
	packet   uint64 // of the current request, which comes next
	next     uint64 // sequence number of that packet
	started  bool
	quiesced bool
}

// Post takes a work request, or returns [wr.ErrSendQueueFull] or a
// *[wr.RequestError] and then has taken nothing. In the error state it completes
// flushed.
func (u *UC) Post(r *wr.Request) error {
	q := &u.send
	if q.Full() {
		return wr.ErrSendQueueFull
	}
	n, err := r.Check(q.MaxSpans())
	if err != nil {
		return err
	}
	if r.Op.TakesRead() || r.Op == wr.OpSendInv {
		return &wr.RequestError{Op: r.Op, Reason: "an unreliable connection has only SEND and WRITE, with or without immediate"}
	}
	w := q.Push(r)
	w.Length, w.NPSN = uint32(n), wr.Packets(n, u.mtu)
	if u.Failed() {
		u.retire()
	}
	return nil
}

// HasOutput reports whether Drain gives a packet.
func (u *UC) HasOutput() bool {
	s := &u.send
	return s.started && s.Current() != nil && (!s.quiesced || s.packet > 0)
}

// Drain appends the packets that may leave and reports whether it stopped only
// because the batch is full. A request completes when its last packet has been
// emitted and, as [UC.Fetched] tells for each packet with a token, read.
func (u *UC) Drain(b *wr.Batch) (more bool) {
	s := &u.send
	for u.HasOutput() {
		if !b.Room() {
			return true
		}
		w := s.Current()
		u.emit(b, w, s.packet)
		s.next++
		s.packet++
		if s.packet == uint64(w.NPSN) {
			s.packet = 0
			s.Left()
			u.retire()
		}
	}
	return false
}

// emit appends packet i of a request.
func (u *UC) emit(b *wr.Batch, w *wr.WQE, i uint64) {
	last := i+1 == uint64(w.NPSN)
	p := b.Scratch()
	*p = roce.Packet{
		Opcode: opcodeAt(w, i, last), Mig: true, PKey: u.pkey, DestQP: u.rqpn, PSN: wr.Wire(u.send.next),
		SE:   last && w.Flags&wr.Solicited != 0 && w.Op != wr.OpWrite,
		RETH: roce.RETH{VA: w.RemoteAddr, RKey: w.RKey, Len: w.Length}, Imm: w.Imm,
	}
	off, n := w.Payload(i, u.mtu)
	u.send.Attach(b, b.Add(p, int(n)), off, n)
	u.stats.Requests++
}

// opcodeAt is the opcode of packet i of a message (§1.9): that of RC in the UC
// class.
func opcodeAt(w *wr.WQE, i uint64, last bool) roce.Opcode {
	op := w.Op.Packet(i == 0, last)
	return op | roce.Opcode(roce.UC)<<5
}

// retire gives the completions of what has left, in order, and in the error state
// of everything whose payload is not being read.
func (u *UC) retire() {
	for w, status := u.send.Retire(); w != nil; w, status = u.send.Retire() {
		u.complete(&cq.Completion{
			WRID: w.ID, Status: status, Opcode: w.Op.Completion(), ByteLen: w.Length,
			RemoteAddr: w.RemoteAddr, RKey: w.RKey,
		})
	}
}
