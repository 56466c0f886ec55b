package rc

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// drain emits request packets while window, fences and depth allow. Nothing but the
// probe leaves while one is under way.
func (r *requester) drain(now mono.Time, b *wr.Batch) (more bool) {
	if !r.hasOutput() {
		return false
	}
	if r.silent() {
		return r.sendProbe(now, b)
	}
	before := r.c.common.stats.Requests
	more = r.sendRequests(now, b)
	if r.c.common.stats.Requests != before { // a peer that misses something says so
		r.probe.settle()
	}
	return more || r.sendProbe(now, b)
}

// sendRequests emits packets from send on, as many as may leave.
func (r *requester) sendRequests(now mono.Time, b *wr.Batch) (more bool) {
	for r.send < r.next {
		if !b.Room() {
			return true
		}
		if !r.sendRun(b) && !r.sendOne(now, b) {
			return false
		}
	}
	return false
}

// sendOne emits the packet at send, if it may leave.
func (r *requester) sendOne(now mono.Time, b *wr.Batch) bool {
	w := r.q.At(r.cur)
	i := r.send - w.First
	if i == 0 && !r.mayStart(w) {
		return false
	}
	n := r.step(w, i)
	if w.Op.TakesRead() && r.rdOut >= r.maxRead {
		return false
	}
	if r.send != r.una && !r.admits(w, i+n) {
		return false
	}
	if !b.Spend(w.Cost(i+n, r.c.common.mtu) - w.Cost(i, r.c.common.mtu)) {
		return false
	}
	if r.send < r.hi {
		r.c.common.stats.Retransmitted++
	}
	r.emit(now, b, w, i, n, false)
	r.send += n
	if r.send == w.End() {
		r.cur++
	}
	r.hi = max(r.hi, r.send)
	if !r.timer.running() {
		r.arm(now)
	}
	return true
}

// mayStart reports whether a request may begin: fences wait for earlier READs
// and atomics (§3.8), SQD starts nothing (§3.17).
func (r *requester) mayStart(w *wr.WQE) bool {
	if r.quiesced && r.send == r.hi {
		return false
	}
	return w.Flags&wr.Fence == 0 || (r.rdOut == 0 && r.uncommitted == 0)
}

// step is the number of PSNs that the packet at i takes: for a READ those of
// its answer, up to the end of the part it lies in (§3.2).
func (r *requester) step(w *wr.WQE, i uint64) uint64 {
	if w.Op != wr.OpRead {
		return 1
	}
	return r.partEnd(w, i) - i
}

// partEnd is where the part of a READ ends that holds packet i.
func (r *requester) partEnd(w *wr.WQE, i uint64) uint64 {
	return min((i/r.readChunk+1)*r.readChunk, uint64(w.NPSN))
}

// admits reports whether the window lets everything before packet i of w out.
func (r *requester) admits(w *wr.WQE, i uint64) bool {
	return r.win.admits(w.First+i-r.una, w.Cost(i, r.c.common.mtu)-r.acked())
}

// emit appends the packet at i, which takes n PSNs; ask has it ask for an
// acknowledgement in any case.
func (r *requester) emit(now mono.Time, b *wr.Batch, w *wr.WQE, i, n uint64, ask bool) {
	c := &r.c.common
	p := b.Scratch()
	*p = roce.Packet{Mig: true, PKey: c.pkey, DestQP: c.rqpn, PSN: wr.Wire(r.send)}
	off, size := w.Payload(i, c.mtu)
	last := i+n == uint64(w.NPSN)
	p.Opcode = w.Op.Packet(i == 0, last)
	p.AckReq = ask || r.wantsAck(w, i, last) || b.Ending()
	p.SE = last && w.Flags&wr.Solicited != 0 && (w.Op <= wr.OpSendInv || w.Op == wr.OpWriteImm)
	p.Imm, p.InvKey = w.Imm, w.InvKey
	p.RETH = roce.RETH{VA: w.RemoteAddr, RKey: w.RKey, Len: w.Length}
	switch w.Op {
	case wr.OpRead: // asked for again from the middle, it is a READ of the rest (§3.13)
		p.RETH.VA += off
		p.RETH.Len = uint32(min(n*c.mtu, uint64(w.Length)-off))
		size = 0
		r.rdOut++
		if i%r.readChunk != 0 {
			r.ansStart = r.send
		}
	case wr.OpCmpSwap, wr.OpFetchAdd:
		p.Atomic = roce.AtomicETH{VA: w.RemoteAddr, RKey: w.RKey, SwapAdd: w.SwapAdd, Compare: w.Compare}
		size = 0
		r.rdOut++
	case wr.OpAtomicWrite:
		r.rdOut++
	default: // SENDs and WRITEs: nothing more
	}
	o := b.Add(p, int(size))
	switch {
	case size == 0:
	case w.IsInline:
		o.Inline = w.Inline[off : off+size]
	default:
		b.Gather(o, w.Spans, off, size)
		o.Token = tokenSend | r.cur
	}
	if p.AckReq {
		r.sinceAck = 0
		if r.send == r.hi {
			r.rtt.start(r.una, r.send+n, now)
		}
	} else {
		r.sinceAck++
	}
	c.stats.Requests++
}

// wantsAck is the AckReq policy (§3.4): the end of a message, everything with an
// answer of its own, every few packets of a long message, and the packet after which
// the window is full.
func (r *requester) wantsAck(w *wr.WQE, i uint64, last bool) bool {
	if last || w.Op.TakesRead() || int(r.sinceAck)+1 >= r.win.ackEvery(int(r.ackEvery)) {
		return true
	}
	return !r.admits(w, i+2)
}
