package ud

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sender emits datagrams.
type sender struct {
	wr.Emitter
	next     uint64 // sequence number of the next packet
	started  bool
	quiesced bool
}

// Post takes a work request, or returns [wr.ErrSendQueueFull] or a
// *[wr.RequestError] and then has taken nothing. A message longer than the MTU is
// refused: the standard has it sent into nothing with success (§5.1), which helps
// nobody.
func (u *UD) Post(r *wr.Request) error {
	q := &u.send
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
	if u.Failed() {
		u.retire()
	}
	return nil
}

// HasOutput reports whether Drain gives a packet.
func (u *UD) HasOutput() bool {
	s := &u.send
	return s.started && !s.quiesced && s.Current() != nil
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
		u.emit(b, s.Current())
		s.next++
		s.Left()
		u.retire()
	}
	return false
}

func (u *UD) emit(b *wr.Batch, w *wr.WQE) {
	p := b.Scratch()
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
	u.send.Attach(b, o, 0, uint64(w.Length))
	u.stats.Requests++
}

// Fetched reports that a packet's payload has been read, or could not be: that
// fails its request. It must follow every packet that has a token.
func (u *UD) Fetched(token uint64, o wr.Outcome) {
	if s := u.send.Fetched(token, o); s != cq.StatusSuccess {
		u.fail(s)
	}
	u.retire()
}

// retire gives the completions of what has left, in order, and in the error state
// of everything whose payload is not being read.
func (u *UD) retire() {
	for w, status := u.send.Retire(); w != nil; w, status = u.send.Retire() {
		u.complete(&cq.Completion{
			WRID: w.ID, Status: status, Opcode: cq.OpSend, ByteLen: w.Length, SrcQP: w.To.QPN, Peer: w.To.Addr,
		})
	}
}
