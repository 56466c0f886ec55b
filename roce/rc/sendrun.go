package rc

import (
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sendRun emits the next packets of a long message at once, as sendOne would one by
// one, if they differ in nothing but the PSN.
func (r *requester) sendRun(b *wr.Batch) bool {
	w := r.q.At(r.cur)
	i := r.send - w.First
	if !b.Runs || i == 0 || w.Op.TakesRead() || w.IsInline || !r.timer.running() {
		return false
	}
	n := r.runLen(b, w, i)
	if n < 2 {
		return false
	}
	c := &r.c.common
	b.Spend(n * (c.mtu + wr.PacketCost))
	p := b.Scratch()
	*p = roce.Packet{Opcode: w.Op.Packet(false, false), Mig: true, PKey: c.pkey, DestQP: c.rqpn, PSN: wr.Wire(r.send)}
	o := b.AddRun(p, int(c.mtu), int(n))
	b.Gather(o, w.Spans, i*c.mtu, n*c.mtu)
	o.Token = tokenSend | r.cur
	if r.send < r.hi {
		c.stats.Retransmitted += n
	}
	c.stats.Requests += n
	r.send += n
	r.hi = max(r.hi, r.send)
	r.sinceAck += int32(n)
	return true
}

// runLen returns how many packets of w from packet i on, which is neither first nor
// last, may leave and need not ask for an acknowledgement. It may be less than that.
func (r *requester) runLen(b *wr.Batch, w *wr.WQE, i uint64) uint64 {
	mtu := r.c.common.mtu
	silent := r.win.ackEvery(int(r.ackEvery)) - 1 - int(r.sinceAck)
	if silent < 2 || i+3 > uint64(w.NPSN) || mtu%4 != 0 {
		return 0
	}
	n := min(uint64(silent), uint64(w.NPSN)-1-i, wr.Contiguous(w.Spans, i*mtu)/mtu)
	n = min(n, b.RunRoom(roce.BTHLen+int(mtu)+roce.ICRCLen, mtu+wr.PacketCost))
	if r.send < r.hi { // what was sent before is counted apart
		n = min(n, r.hi-r.send)
	}
	// The last packet before the window is full asks.
	return min(n, r.win.spare(w.First+i+1-r.una, w.Cost(i+1, mtu)-r.acked(), mtu+wr.PacketCost))
}

// spare returns how many packets of weight each are admitted beyond so many that
// weigh cost.
func (w *window) spare(packets, cost, each uint64) uint64 {
	if !w.admits(packets, cost) {
		return 0
	}
	return min(w.packets-packets, (w.maxBytes-cost)/each)
}

// emitReadRun is emitRead for the next packets inside an answer, as far as there are
// some.
func (s *responder) emitReadRun(b *wr.Batch, r *resource) bool {
	mtu := s.c.common.mtu
	if !b.Runs || r.op != roce.OpReadRequest || r.next == r.begin || r.next+3 > r.npsn || mtu%4 != 0 {
		return false
	}
	n := min(r.npsn-1-r.next, b.RunRoom(roce.BTHLen+int(mtu)+roce.ICRCLen, 0))
	if n < 2 {
		return false
	}
	seq := r.first + r.next
	o := b.AddRun(s.packet(b, roce.OpReadRespMiddle, seq, roce.SynACK, r.msn), int(mtu), int(n))
	s.c.common.stats.Responses += n - 1
	s.c.common.spans = append(s.c.common.spans[:0], r.span)
	b.Gather(o, s.c.common.spans, r.next*mtu, n*mtu)
	o.Token, o.Step = tokenReadReply|seq&tokenSeq, 1
	s.answered(r, seq+n)
	return true
}
