package hixl

import (
	"context"
	"errors"
	"sync/atomic"
)

// Handle is a transfer that was begun. All methods may be called from any
// goroutine. It ends once, whatever happens to the peer or the context; what it
// moved, and the result of an atomic, can be seen by whoever has learned that it is
// done.
type Handle struct {
	p      *Peer
	op     TransferOp
	name   string // of a lookup
	total  uint64
	onDone func(*Handle)
	user   any
	stream *Stream // it is on
	trace  *Trace  // that is to be told of it
	began  Time    // with trace

	done    atomic.Bool
	arrived atomic.Uint64

	// Guarded by the peer's lock, and not changed once it is done.
	parts    int   // that have not ended
	waits    bool  // on its stream, to be begun
	lane     uint8 // of its stream, counted from 1; 0: any
	pushed   bool
	executed bool // something of it may have taken effect
	loose    bool // something of it was posted and has failed: it may land yet
	canceled bool
	gen      *generation
	result   uint64
	remote   *RemoteRegion // that a lookup has found, or the first of a transfer
	err      error
	ch       chan struct{} // closed when it is done, if somebody asked
}

// reset makes a handle ready for a transfer.
func (h *Handle) reset(p *Peer, t *Transfer) {
	*h = Handle{}
	h.p, h.op, h.onDone, h.user = p, t.Op, t.Done, t.UserData
}

// Peer returns the peer of the transfer.
func (h *Handle) Peer() *Peer { return h.p }

// UserData returns what the transfer was given.
func (h *Handle) UserData() any { return h.user }

// Poll makes progress and reports whether the transfer is done, and its error then.
// It never blocks.
func (h *Handle) Poll() (done bool, err error) {
	if !h.done.Load() {
		if !h.p.c.nic.stepped {
			h.p.c.driver.Progress()
		}
		h.p.settle()
		if !h.done.Load() {
			return false, nil
		}
	}
	return true, h.err
}

// Wait waits until the transfer is done and returns its error. When ctx ends first,
// its error is returned and the transfer goes on: see [Handle.Cancel].
func (h *Handle) Wait(ctx context.Context) error {
	if !h.await(ctx) {
		return ctx.Err()
	}
	return h.err
}

// Done returns a channel that is closed when the transfer is done. Asking for it
// costs the dispatcher's attention to the transfer; Wait and Poll do not.
func (h *Handle) Done() <-chan struct{} {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	ch := h.channel()
	if !h.done.Load() {
		h.push()
	}
	return ch
}

// channel returns what is closed when the handle is done. The peer's lock is held.
func (h *Handle) channel() chan struct{} {
	if h.ch == nil {
		h.ch = make(chan struct{})
		if h.done.Load() {
			close(h.ch)
		}
	}
	return h.ch
}

// push has the dispatcher end the transfer. The peer's lock is held.
func (h *Handle) push() {
	if h.pushed {
		return
	}
	h.pushed = true
	h.p.pushers.Add(1)
	if h.p.news.Load() {
		h.p.c.attend(h.p)
	}
}

// Err returns nil until the transfer is done, then its error.
func (h *Handle) Err() error {
	if !h.done.Load() {
		return nil
	}
	return h.err
}

// Result returns the word that an atomic found, once it is done without error.
func (h *Handle) Result() uint64 {
	if !h.done.Load() {
		return 0
	}
	return h.result
}

// Arrived returns how many bytes are known to have arrived so far: acknowledged by
// the peer or, of reads, in local memory.
func (h *Handle) Arrived() uint64 { return h.arrived.Load() }

// await waits until the handle is done; false: ctx has ended before.
func (h *Handle) await(ctx context.Context) bool {
	p, c := h.p, h.p.c
	for try := 0; !h.done.Load(); {
		if p.settle() {
			continue
		}
		if ctx.Err() != nil {
			return h.done.Load()
		}
		if !c.nic.stepped {
			if c.driver.Progress() {
				try = 0
				continue
			}
			if c.driver.Patience(try) {
				try++
				continue
			}
		}
		h.sleep(ctx)
		try = 0
	}
	return true
}

// sleep waits for the handle, for completions, or for the end of ctx.
func (h *Handle) sleep(ctx context.Context) {
	p := h.p
	p.mu.Lock()
	done := h.channel()
	p.mu.Unlock()
	p.parked.Add(1)
	if !p.news.Load() {
		select {
		case <-p.wakeup:
		case <-done:
		case <-ctx.Done():
		}
	}
	if p.parked.Add(-1) > 0 && p.news.Load() {
		p.rouse() // what woke this one may have been meant for another
	}
}

// settle ends what has ended, if anything, and reports whether there was.
func (p *Peer) settle() bool {
	if !p.news.Load() {
		return false
	}
	p.mu.Lock()
	if p.news.Swap(false) {
		if failed := p.harvest(); failed != nil || p.queue.Len() > 0 || len(p.gates) > 0 {
			p.follow(p.c.nic.nic.Now(), failed)
		}
	}
	p.release()
	return true
}

// finish ends a handle. The peer's lock is held.
func (p *Peer) finish(h *Handle) {
	if h.pushed {
		p.pushers.Add(-1)
	}
	if h.err != nil {
		p.c.counts.failed.Add(1)
		p.describe(h)
	}
	if h.trace != nil {
		h.trace.transfer(h, p.c.nic.nic.Now())
	}
	onDone, ch, stream := h.onDone, h.ch, h.stream
	if stream != nil && h.err != nil && h.lane != 0 {
		stream.lost.Store(true)
	}
	h.done.Store(true) // from here on it may be another transfer's, if nobody has it
	if ch != nil {
		close(ch)
	}
	if stream != nil {
		p.c.attendStream(stream)
	}
	if onDone != nil {
		p.c.call(h)
	}
}

// label is what errors call the region. The peer's lock is held.
func (h *Handle) label() string {
	if h.remote != nil {
		return h.remote.label()
	}
	return h.name
}

// describe makes the error of a handle say what is known.
func (p *Peer) describe(h *Handle) {
	cause := h.err
	if told := (*TransferError)(nil); errors.As(cause, &told) {
		return // of an unsignaled write, told by a Flush
	}
	e := &TransferError{
		Op: h.op, Peer: p.addr, Region: h.label(), Arrived: h.arrived.Load(), Total: h.total, Retriable: retriable(cause),
		Executed: h.executed && !h.op.repeatable(), Fenced: true, Handle: h, Err: cause,
	}
	if h.gen != nil {
		e.Generation = h.gen.n
		e.Fenced = h.gen.fenced || !h.loose
	}
	h.err = e
}
