package ud

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sender emits datagrams. Requests before cur have been emitted and wait only
// for their payload to be read.
type sender struct {
	q        wr.SendQueue
	cur      uint64
	next     uint64 // sequence number of the next packet
	started  bool
	quiesced bool

	failIndex  uint64
	failStatus cq.Status
}

// tokenBit keeps tokens from being 0, which means that there is none.
const tokenBit = 1 << 63

// Post takes a work request, or returns [wr.ErrSendQueueFull] or a
// *[wr.RequestError] and then has taken nothing. A message longer than the MTU is
// refused: the standard has it sent into nothing with success (§5.1), which helps
// nobody.
func (u *UD) Post(r *wr.Request) error {
	q := &u.send.q
	if q.Full() {
		return wr.ErrSendQueueFull
	}
	n, err := r.Check(q.MaxSpans())
	switch {
	case err != nil:
		return err
	case r.Op != wr.OpSend && r.Op != wr.OpSendImm:
		return &wr.RequestError{Op: r.Op, Reason: "a datagram queue pair has only SEND, with or without immediate"}
	case !r.To.Addr.IsValid():
		return &wr.RequestError{Op: r.Op, Reason: "no address handle says where to send it"}
	case n > u.mtu:
		return &wr.RequestError{Op: r.Op, Reason: "longer than one packet", Got: n, Max: u.mtu}
	}
	w := q.Push(r)
	w.Length, w.NPSN = uint32(n), 1
	if u.failed {
		u.send.retire(u)
	}
	return nil
}

// HasOutput reports whether Drain gives a packet.
func (u *UD) HasOutput() bool {
	s := &u.send
	return s.started && !u.failed && !s.quiesced && s.cur < s.q.Tail
}

// Drain appends the packets that may leave and reports whether it stopped only
// because the batch is full. A request completes when its packet has been emitted
// and, as [UD.Fetched] tells for each with a token, read.
func (u *UD) Drain(b *wr.Batch) (more bool) {
	s := &u.send
	for u.HasOutput() {
		if !b.Room() {
			return true
		}
		u.emit(b, s.q.At(s.cur))
		s.next++
		s.cur++
		s.retire(u)
	}
	return false
}

func (u *UD) emit(b *wr.Batch, w *wr.WQE) {
	p := &u.scratch
	*p = roce.Packet{
		Opcode: roce.OpUDSendOnly, Mig: true, PKey: u.pkey, DestQP: w.To.QPN, PSN: wr.Wire(u.send.next),
		SE: w.Flags&wr.Solicited != 0, DETH: roce.DETH{QKey: w.To.QKey, SrcQP: u.lqpn}, Imm: w.Imm,
	}
	if w.Op == wr.OpSendImm {
		p.Opcode = roce.OpUDSendOnlyImm
	}
	if w.To.QKey&privilegedQKey != 0 {
		p.DETH.QKey = u.qkey
	}
	o := b.Add(p, int(w.Length))
	o.To = &w.To
	switch {
	case w.Length == 0:
	case w.IsInline:
		o.Inline = w.Inline
	default:
		b.Gather(o, w.Spans, 0, uint64(w.Length))
		o.Token = u.send.cur | tokenBit
		w.Busy++
	}
	u.stats.Requests++
}

// Fetched reports that a packet's payload has been read, or could not be: that
// fails its request. It must follow every packet that has a token.
func (u *UD) Fetched(token uint64, o wr.Outcome) {
	s, i := &u.send, token&^tokenBit
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
func (s *sender) retire(u *UD) {
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
		w := s.q.At(s.q.Head)
		if w.Flags&wr.Signaled != 0 || status != cq.StatusSuccess {
			u.complete(&cq.Completion{
				WRID: w.ID, Status: status, Opcode: cq.OpSend, ByteLen: w.Length, SrcQP: w.To.QPN, Peer: w.To.Addr,
			})
		}
		s.q.Pop()
		s.cur = max(s.cur, s.q.Head)
	}
}
