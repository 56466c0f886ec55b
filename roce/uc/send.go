package uc

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sender numbers and emits request packets. Requests before cur have been
// emitted and wait only for their payload to be read.
type sender struct {
	q        wr.SendQueue
	cur      uint64 // the request being emitted
	packet   uint64 // which of its packets comes next
	next     uint64 // sequence number of that packet
	started  bool
	quiesced bool

	failIndex  uint64 // the request that failed, if failStatus is not success
	failStatus cq.Status
}

// Post takes a work request, or returns [wr.ErrSendQueueFull] or a
// *[wr.RequestError] and then has taken nothing. In the error state it completes
// flushed.
func (u *UC) Post(r *wr.Request) error {
	q := &u.send.q
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
	if u.failed {
		u.send.retire(u)
	}
	return nil
}

// HasOutput reports whether Drain gives a packet.
func (u *UC) HasOutput() bool {
	s := &u.send
	return s.started && !u.failed && s.cur < s.q.Tail && (!s.quiesced || s.packet > 0)
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
		w := s.q.At(s.cur)
		u.emit(b, w, s.packet)
		s.next++
		s.packet++
		if s.packet == uint64(w.NPSN) {
			s.packet = 0
			s.cur++
			s.retire(u)
		}
	}
	return false
}

// emit appends packet i of a request.
func (u *UC) emit(b *wr.Batch, w *wr.WQE, i uint64) {
	last := i+1 == uint64(w.NPSN)
	p := &u.scratch
	*p = roce.Packet{
		Opcode: opcodeAt(w, i, last), Mig: true, PKey: u.pkey, DestQP: u.rqpn, PSN: wr.Wire(u.send.next),
		SE:   last && w.Flags&wr.Solicited != 0 && w.Op != wr.OpWrite,
		RETH: roce.RETH{VA: w.RemoteAddr, RKey: w.RKey, Len: w.Length}, Imm: w.Imm,
	}
	off, n := w.Payload(i, u.mtu)
	o := b.Add(p, int(n))
	switch {
	case n == 0:
	case w.IsInline:
		o.Inline = w.Inline[off : off+n]
	default:
		b.Gather(o, w.Spans, off, n)
		o.Token = u.send.cur | tokenBit
		w.Busy++
	}
	u.stats.Requests++
}

// tokenBit keeps tokens from being 0, which means that there is none.
const tokenBit = 1 << 63

// opcodeAt is the opcode of packet i of a message (§1.9): that of RC in the UC
// class.
func opcodeAt(w *wr.WQE, i uint64, last bool) roce.Opcode {
	op := w.Op.Packet(i == 0, last)
	return op | roce.Opcode(roce.UC)<<5
}

// fetched notes that a payload of request i has been read, or could not be.
func (s *sender) fetched(u *UC, i uint64, o wr.Outcome) {
	if !s.q.Has(i) || s.q.At(i).Busy == 0 {
		return
	}
	s.q.At(i).Busy--
	if o != wr.Done && !u.failed {
		s.failIndex, s.failStatus = i, cq.StatusLocalQPOperation
		if o == wr.Revoked {
			s.failStatus = cq.StatusLocalProtection
		}
		u.Fail(s.failStatus)
		return
	}
	s.retire(u)
}

// retire completes, in order, what has left, and in the error state everything
// whose payload is not being read.
func (s *sender) retire(u *UC) {
	for s.q.Head < s.q.Tail && s.q.At(s.q.Head).Busy == 0 {
		status := cq.StatusSuccess
		switch {
		case s.failStatus != cq.StatusSuccess && s.q.Head == s.failIndex:
			status = s.failStatus
		case s.q.Head < s.cur:
		case u.failed:
			status = cq.StatusFlushed
		default:
			return
		}
		s.complete(u, status)
	}
}

func (s *sender) complete(u *UC, status cq.Status) {
	w := s.q.At(s.q.Head)
	if w.Flags&wr.Signaled != 0 || status != cq.StatusSuccess {
		u.complete(&cq.Completion{
			WRID: w.ID, Status: status, Opcode: w.Op.Completion(), ByteLen: w.Length,
			RemoteAddr: w.RemoteAddr, RKey: w.RKey,
		})
	}
	s.q.Pop()
	s.cur = max(s.cur, s.q.Head)
}
