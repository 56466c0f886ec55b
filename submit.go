package hixl

import (
	"fmt"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerlink"
	"github.com/gohixl/hixl/roce/wr"
)

// maxPiece is the largest work request that a piece of a transfer becomes.
const maxPiece = 1 << 30

// pieceKind says what a work request is for.
type pieceKind uint8

const (
	pieceData    pieceKind = iota // bytes of a transfer
	pieceWord                     // an atomic, whose result lands in a word of the context's
	pieceMessage                  // a message to the other context
	pieceLetter                   // one too long to be sent inline, which lies in the outbox
	pieceProbe                    // a write of nothing
	pieceChunk                    // gathered writes, the last of their chunk
	pieceGate                     // what waits for what was posted before it
	pieceFence                    // what holds up everything behind it
)

// piece is a work request before it is posted.
type piece struct {
	h       *Handle
	kind    pieceKind
	op      TransferOp
	flags   TransferFlags
	local   *Region
	off     uint64
	inline  []byte
	remote  *RemoteRegion
	roff    uint64
	n       uint64
	imm     uint32
	compare uint64
	operand uint64
	slot    uint32 // of a chunk
	spends  bool   // one of the notifications that the peer has room for
}

// begin starts a transfer of pieces. On error nothing was begun.
func (p *Peer) begin(h *Handle, t *Transfer, descs []Desc) error {
	if err := p.checkTransfer(t, descs); err != nil {
		return err
	}
	p.mu.Lock()
	err := p.beginLocked(h, t, descs)
	p.release()
	return err
}

// beginLocked is begin. p.mu is held.
func (p *Peer) beginLocked(h *Handle, t *Transfer, descs []Desc) error {
	n, total := 0, uint64(0)
	for i := range descs {
		d := &descs[i]
		if err := p.checkDesc(t.Op, d); err != nil {
			return err
		}
		n += pieces(d.Len)
		total += d.size()
	}
	now := p.c.nic.nic.Now()
	if err := p.ready(now, n+1); err != nil {
		return err
	}
	tells := t.Op == WriteImm || t.Notify != nil
	if tells && p.cur != nil && h.stream == nil && !p.inc.vacant() { // a stream waits
		return p.refuse(t.Op, ErrNotifyFull)
	}
	p.spill(now)
	p.c.counts.transfers.Add(1)
	h.parts, h.total = n, total
	if len(descs) > 0 {
		h.remote = descs[0].Remote
	}
	if h.trace = p.c.trace.Load(); h.trace != nil {
		h.began = now
	}
	if h.onDone != nil || h.stream != nil {
		h.push()
	}
	flags := t.Flags
	if tells && t.Op != Notify && total <= tellTogether {
		flags |= Ordered // so that the notification can follow at once
	}
	if t.Notify != nil {
		h.parts++
	}
	for i := range descs {
		p.cut(now, h, t, flags, &descs[i], i == len(descs)-1)
	}
	if t.Notify != nil {
		p.announce(now, h, t.Notify, flags, t.Op)
	}
	return nil
}

// tellTogether is the largest transfer in bytes that goes on one queue pair because
// a notification follows it.
const tellTogether = 1 << 20

// announce sends the notification of a transfer behind its pieces. p.mu is held.
func (p *Peer) announce(now mono.Time, h *Handle, n *Notification, flags TransferFlags, op TransferOp) {
	x := piece{h: h, kind: pieceGate, op: Notify, inline: n.message(), flags: Ordered, spends: true}
	if flags&Ordered != 0 {
		x.kind = pieceMessage
	}
	if op == Read || op.atomic() {
		x.flags |= FenceBefore
	}
	p.put(now, &x)
}

// ready refuses n more pieces if there is no room or no peer. p.mu is held.
func (p *Peer) ready(now mono.Time, n int) error {
	p.used = now
	if n > p.c.cfg.MaxQueued {
		return fmt.Errorf("%w: %d pieces at a time for peer %v, PeerConfig.MaxQueued allows %d", ErrBusy, n, p.addr, p.c.cfg.MaxQueued)
	}
	if int(p.queue.Len())+n > p.c.cfg.MaxQueued {
		return fmt.Errorf("%w: %d pieces wait for peer %v, the most that PeerConfig.MaxQueued allows", ErrBusy, p.queue.Len(), p.addr)
	}
	if p.cur == nil {
		p.want(now)
		if !p.link.Patient(now) {
			return p.down()
		}
		p.rearm()
	}
	return nil
}

// cut makes work requests of a piece of a transfer. p.mu is held.
func (p *Peer) cut(now mono.Time, h *Handle, t *Transfer, flags TransferFlags, d *Desc, last bool) {
	x := piece{
		h: h, op: t.Op, flags: flags, local: d.Local, off: d.LocalOff, inline: d.Inline, remote: d.Remote, roff: d.RemoteOff,
		n: d.size(), imm: t.Imm, compare: t.Compare, operand: t.Operand,
	}
	if t.Op == CompareSwap || t.Op == FetchAdd {
		x.kind, x.n = pieceWord, 8
	}
	if t.Op == WriteImm {
		x.flags |= Ordered // the immediate speaks of all pieces before it
		if x.spends = last; !last {
			x.op = Write
		}
	}
	for x.n > maxPiece {
		part := x
		part.n = maxPiece
		if part.op == WriteImm {
			part.op, part.spends = Write, false
		}
		p.put(now, &part)
		x.off, x.roff, x.n = x.off+maxPiece, x.roff+maxPiece, x.n-maxPiece
	}
	p.put(now, &x)
}

// put posts a piece, or queues it behind others. p.mu is held.
func (p *Peer) put(now mono.Time, x *piece) {
	if p.cur != nil && (p.queue.Len() == 0 || p.passes(x)) && p.admitPiece(now, x) {
		return
	}
	q := *x
	if len(q.inline) > 0 { // the caller's
		q.inline = append([]byte(nil), q.inline...)
	}
	if p.queue.Len() == 0 {
		p.pushers.Add(1) // somebody must post it
	}
	p.queue.Push(q)
}

// admitPiece does what can be done with a piece now, or returns false. p.mu is
// held.
func (p *Peer) admitPiece(now mono.Time, x *piece) bool {
	switch x.kind {
	case pieceFence:
		return p.quiet(now)
	case pieceGate:
		p.close(now, x)
		return true
	default:
	}
	l := p.choose(now, x)
	if l != nil {
		p.post(now, l, x)
	}
	return l != nil
}

// pump posts what waits, as far as there is room. p.mu is held.
func (p *Peer) pump(now mono.Time) {
	for p.cur != nil {
		p.passGates(now)
		if p.queue.Len() == 0 {
			return
		}
		if x := *p.queue.At(p.queue.Head); !p.admitPiece(now, &x) {
			return
		}
		p.shift()
	}
}

// shift drops the oldest of the queue, and the memory of an empty one: most peers
// are idle. p.mu is held.
func (p *Peer) shift() {
	p.queue.Pop()
	p.drained()
}

// drained follows the removal of something from the queue.
func (p *Peer) drained() {
	if p.queue.Len() == 0 {
		p.queue = wr.Ring[piece]{}
		p.pushers.Add(-1)
	}
	p.roomy()
}

// failQueue fails what waits, for the connection or for an answer. p.mu is held.
func (p *Peer) failQueue(err error) {
	for p.queue.Len() > 0 {
		x := *p.queue.At(p.queue.Head)
		p.shift()
		p.fail(&x, err)
	}
	p.unanswered(err)
}

// fail ends a piece that was not posted. p.mu is held.
func (p *Peer) fail(x *piece, err error) {
	switch {
	case x.kind == pieceChunk:
		p.c.chunks.put(x.slot)
		p.lose(err, nil, x.n, 0)
	case x.op == Flush && x.h != nil:
		p.flushed(x.h, err)
	case x.h != nil:
		p.part(x.h, err, 0)
	case x.flags&Unsignaled != 0:
		p.lose(err, nil, x.n, 0)
	}
}

// lose notes that an unsignaled write has failed, for the next Flush to tell. p.mu
// is held.
func (p *Peer) lose(err error, g *generation, total, arrived uint64) {
	if p.lost != nil {
		return
	}
	h := &Handle{p: p, op: Write, total: total, gen: g, loose: g != nil, err: err}
	h.arrived.Store(arrived)
	p.describe(h)
	h.done.Store(true)
	p.lost = h.err
}

// Load from which on another queue pair is worth having.
const (
	widenBytes = 64 << 10
	widenWork  = 16
)

// choose returns the lane for a piece, nil if it must wait. p.mu is held.
func (p *Peer) choose(now mono.Time, x *piece) *lane {
	if x.flags&Ordered != 0 || x.kind == pieceMessage || x.kind == pieceProbe {
		first := p.pinned(x.h)
		if !first.room() || x.spends && !p.inc.spend() {
			return nil
		}
		return first
	}
	return p.idlest(now)
}

// idlest returns the lane with the least to do that has room, if any. p.mu is held.
func (p *Peer) idlest(now mono.Time) (best *lane) {
	for _, l := range p.cur.lanes {
		if l != nil && l.room() && !p.reserved(l) && (best == nil || l.bytes < best.bytes) {
			best = l
		}
	}
	if best == nil || best.bytes > widenBytes || best.fifo.Len() > widenWork {
		p.widen(now)
	}
	return best
}

// widen makes one more lane, if there may be one and none is being made. p.mu is
// held.
func (p *Peer) widen(mono.Time) {
	g := p.cur
	if p.passive || p.link.State() != peerlink.Up {
		return
	}
	for i, l := range g.lanes {
		if l != nil && !l.up {
			return
		}
		if l == nil {
			l = &lane{p: p, gen: g, index: i}
			if l.dial() == nil {
				g.lanes[i] = l
			}
			return
		}
	}
}

// ended ends a work request. p.mu is held.
func (p *Peer) ended(l *lane, e *posted, s cq.Status, arrived uint64) {
	result := p.let(e)
	h := e.h
	if h == nil {
		if s != cq.StatusSuccess && e.silent {
			p.lose(l.failure(s), l.gen, e.n, arrived)
		}
		return
	}
	if h.canceled && h.op == Read {
		p.part(h, ErrCanceled, 0) // what came since has been dropped, see stopReads
		return
	}
	if s != cq.StatusSuccess {
		h.loose = h.loose || h.op.lands()
		err := l.failure(s)
		if h.canceled {
			err = fmt.Errorf("%w: %w", ErrCanceled, err)
		}
		p.part(h, err, arrived)
		return
	}
	h.result = result
	p.part(h, nil, arrived)
}

// part ends a part of a transfer. p.mu is held.
func (p *Peer) part(h *Handle, err error, arrived uint64) {
	if h == nil {
		return
	}
	if err != nil && h.err == nil {
		h.err = err
	}
	if arrived > 0 {
		h.arrived.Add(arrived)
	}
	if h.parts--; h.parts == 0 {
		p.finish(h)
	}
}

// probe asks the peer for a sign of life: a write of nothing, which needs no key.
func (p *Peer) probe(now mono.Time) {
	x := piece{kind: pieceProbe, op: Write}
	if l := p.choose(now, &x); l != nil && l.idle() {
		p.c.counts.probes.Add(1)
		p.post(now, l, &x)
	}
}
