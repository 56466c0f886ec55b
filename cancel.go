package hixl

import (
	"context"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/internal/mono"
)

// Cancel gives the transfer up and tells the truth about it. nil means that it is
// fenced: no byte of it lands from now on, here or at the peer, and no local byte of
// it is read. It may have been done before, see Err.
//
// What was not posted is dropped. A read lands nothing more at once. A write that
// was posted is awaited, since the peer may have it already; if it makes no progress
// for PeerConfig.FenceAfter, its connection is closed, whose other transfers fail
// with [ErrAborted], and the peer's word that it takes nothing of it any more is
// awaited. When ctx ends before that, the error is a *[TransferError] that unwraps
// to [ErrUnfenced]: bytes may still land, and [Handle.WaitFenced] waits on.
func (h *Handle) Cancel(ctx context.Context) error {
	h.StartCancel()
	return h.WaitFenced(ctx)
}

// StartCancel begins Cancel and returns at once: [Handle.Fenced] tells when it is
// through.
func (h *Handle) StartCancel() {
	p := h.p
	p.mu.Lock()
	defer p.release()
	p.reap(p.c.nic.nic.Now())
	p.cancel(h)
}

// WaitFenced waits until the transfer is over and fenced, whether it was canceled,
// or failed, or is done. The error is as for Cancel.
func (h *Handle) WaitFenced(ctx context.Context) error {
	if !h.await(ctx) {
		return h.unfenced(ctx)
	}
	fence := h.barrier()
	if fence == nil {
		return nil
	}
	select {
	case <-fence:
		return nil
	case <-ctx.Done():
	}
	if h.barrier() == nil {
		return nil
	}
	return h.unfenced(ctx)
}

// Fenced reports whether the transfer is over and no byte of it can land any more.
func (h *Handle) Fenced() bool {
	if !h.done.Load() {
		h.p.settle()
	}
	return h.done.Load() && h.barrier() == nil
}

// barrier returns what is closed when the transfer, which is done, is fenced; nil:
// it is.
func (h *Handle) barrier() <-chan struct{} {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	g := h.gen
	if !h.loose || g == nil || g.fenced {
		return nil
	}
	if g.fence == nil {
		g.fence = make(chan struct{})
	}
	return g.fence
}

// unfenced is the error of a transfer that could not be fenced in time.
func (h *Handle) unfenced(ctx context.Context) error {
	p := h.p
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &TransferError{
		Op: h.op, Peer: p.addr, Region: h.label(), Arrived: h.arrived.Load(), Total: h.total, Retriable: true,
		Executed: h.executed && !h.op.repeatable(), Handle: h, Err: errors.Join(ErrCanceled, ctx.Err()),
	}
	if h.gen != nil {
		e.Generation = h.gen.n
	}
	return e
}

// cancel drops what of a transfer is not posted, and has the rest fenced. p.mu is
// held.
func (p *Peer) cancel(h *Handle) {
	if h.done.Load() || h.canceled {
		return
	}
	h.canceled = true
	if h.waits {
		h.waits = false
		p.part(h, ErrCanceled, 0)
		return
	}
	p.unqueue(h)
	if h.op == Lookup {
		p.forgetQuestion(h)
	}
	if h.done.Load() {
		return
	}
	if h.op == Read && p.stopReads(h) {
		return
	}
	now := p.c.nic.nic.Now()
	p.fencing = append(p.fencing, fencing{h, now.Add(p.c.cfg.FenceAfter)})
	p.rearm()
}

// fencing is a canceled transfer whose connection is closed if it does not end in
// time.
type fencing struct {
	h  *Handle
	at mono.Time
}

// unqueue drops what waits of a transfer. p.mu is held.
func (p *Peer) unqueue(h *Handle) {
	if n := p.queue.Len(); n > 0 {
		for range n {
			x := *p.queue.At(p.queue.Head)
			p.queue.Pop()
			if x.h == h {
				p.fail(&x, ErrCanceled)
			} else {
				p.queue.Push(x)
			}
		}
		p.drained()
	}
	kept := p.gates[:0]
	for _, g := range p.gates {
		if g.x.h != h {
			kept = append(kept, g)
			continue
		}
		if g.x.op != Flush {
			p.pushers.Add(-1)
		}
		p.fail(&g.x, ErrCanceled)
	}
	clear(p.gates[len(kept):])
	p.gates = kept
}

// stopReads lets nothing more of a read land here, whatever the peer sends, and
// ends it; false: memory that finishes late is still at it. The work requests go
// on, for nobody. p.mu is held.
func (p *Peer) stopReads(h *Handle) bool {
	g := h.gen
	still := true
	for _, l := range g.lanes {
		if l == nil {
			continue
		}
		for i := l.fifo.Head; i < l.fifo.Tail; i++ {
			if e := l.fifo.At(i); e.h == h && !l.closed {
				still = l.conn.q.Discard(l.seq-(l.fifo.Tail-1-i)) && still
			}
		}
	}
	if !still {
		return false
	}
	for _, l := range g.lanes {
		if l == nil {
			continue
		}
		for i := l.fifo.Head; i < l.fifo.Tail; i++ {
			if e := l.fifo.At(i); e.h == h {
				e.h = nil
			}
		}
	}
	if h.err == nil {
		h.err = ErrCanceled
	}
	h.parts = 0
	p.finish(h)
	return true
}

// fenceDue closes the connection of canceled transfers that make no progress. p.mu
// is held.
func (p *Peer) fenceDue(now mono.Time) {
	due := false
	kept := p.fencing[:0]
	for _, f := range p.fencing {
		switch {
		case f.h.done.Load():
		case now.Before(f.at):
			kept = append(kept, f)
		default:
			due = due || f.h.gen == p.cur && p.cur != nil
		}
	}
	clear(p.fencing[len(kept):])
	if p.fencing = kept; len(kept) == 0 {
		p.fencing = nil
	}
	if due {
		p.breakUp(now, ErrAborted)
	}
}

// nextFence is when fenceDue has something to do; 0 is never. p.mu is held.
func (p *Peer) nextFence() (at mono.Time) {
	for _, f := range p.fencing {
		at = mono.Earliest(at, f.at)
	}
	return at
}

// overdue is the error of a transfer whose context ended: it is canceled, as far as
// that goes at once.
func (p *Peer) overdue(ctx context.Context, h *Handle) error {
	h.StartCancel()
	if !h.Fenced() {
		return h.unfenced(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.err == nil {
		return nil // it was just done
	}
	return &TransferError{
		Op: h.op, Peer: p.addr, Region: h.label(), Arrived: h.arrived.Load(), Total: h.total, Retriable: true,
		Executed: h.executed && !h.op.repeatable(), Fenced: true, Handle: h, Err: fmt.Errorf("%w: %w", ErrCanceled, ctx.Err()),
	}
}
