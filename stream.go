package hixl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// StreamConfig says how a stream shares a peer's queue pairs with others.
type StreamConfig struct {
	// Priority chooses queue pairs: 0 is the peer's first, as for Ordered transfers.
	// Above 0, the stream is urgent: with PeerConfig.QPs of 3 or more, its work has
	// a queue pair on which neither bulk
	// nor, from its first use on, unordered transfers go. Below 0, it is
	// bulk: its work goes on the last queue pair, out of the way of the others.
	Priority int
	// MaxBytes is how many bytes of the stream's transfers are under way at a time,
	// 0 without bound. A larger transfer is under way alone.
	MaxBytes uint64
}

// Stream is an ordered flow: what is put on it takes effect, and ends, in the order of
// the calls. Different streams are independent but for events, see [Stream.Wait].
// Transfers to one peer follow each other without a pause, on one queue pair; between
// different peers, and around calls, the stream waits for what was before.
//
// When something fails or is canceled, nothing behind it is begun: it fails for the
// same reason, until [Stream.Synchronize] has told it. All methods may be called from
// any goroutine.
type Stream struct {
	// Set once.
	c   *Context
	cfg StreamConfig

	mu       sync.Mutex
	queue    []streamItem // guarded by mu, as all below; not begun
	running  []streamItem // begun, and not known to have ended
	bytes    uint64       // of them
	calls    int          // of them
	lanes    map[*Peer]berth
	reads    bool // a read or an atomic is among them
	err      error
	closed   bool
	attended bool // guarded by the context's todo

	lost atomic.Bool // something that was begun has failed; set under the peer's lock
}

// maxRunning bounds what of a stream is under way; the rest waits here.
const maxRunning = 256

// streamItem is one thing on a stream: a transfer, a call, a record or a wait.
type streamItem struct {
	h *Handle
	t *Transfer // with h, until it is begun
	n uint64    // bytes, with h
	f func() error
	e *StreamEvent // of f, to be recorded, or, with wait, to be waited for
	// wait: the stream goes on when e has come.
	wait bool
}

// records reports whether it is an event of Record, not yet come.
func (x *streamItem) records() bool { return x.h == nil && x.f == nil && !x.wait }

// StreamEvent is a place in the flow of a stream.
type StreamEvent struct {
	c *Context

	mu    sync.Mutex
	done  chan struct{}
	at    Time // guarded by mu; 0: it has not come
	err   error
	waits []*Stream // guarded by mu
}

// NewStream makes a stream. It costs nothing while it is idle.
func (c *Context) NewStream(cfg StreamConfig) *Stream {
	s := &Stream{c: c, cfg: cfg, lanes: make(map[*Peer]berth)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		s.closed = true
	} else {
		c.streams[s] = struct{}{}
	}
	return s
}

// Transfer puts a transfer on the stream, which takes a copy of t, and returns at once.
// While as much waits for the peer as PeerConfig.MaxQueued allows, it waits on the
// stream. The error unwraps to [ErrTransfer], to [ErrClosed], or to [ErrBusy] when
// MaxQueued things wait on the stream itself: wait for one of them, or Synchronize. All
// else is the handle's error; when something before has failed, it unwraps to
// [ErrStream] and the reason.
func (s *Stream) Transfer(p *Peer, t *Transfer) (*Handle, error) {
	if p.c != s.c {
		return nil, p.badTransfer(t.Op, "the stream is another context's")
	}
	if err := p.checkTransfer(t, t.Descs); err != nil {
		return nil, err
	}
	h := new(Handle)
	h.reset(p, t)
	h.stream, h.parts, h.waits = s, 1, true
	x := streamItem{h: h, t: t.clone()}
	for i := range t.Descs {
		x.n += t.Descs[i].size()
	}
	if err := s.put(x); err != nil {
		return nil, err
	}
	return h, nil
}

// clone returns a transfer that does not share what its caller may change.
func (t *Transfer) clone() *Transfer {
	c := *t
	c.Descs = append([]Desc(nil), t.Descs...)
	for i := range c.Descs {
		c.Descs[i].Inline = append([]byte(nil), c.Descs[i].Inline...)
	}
	if t.Notify != nil {
		n := *t.Notify
		n.Data = append([]byte(nil), n.Data...)
		c.Notify = &n
	}
	return &c
}

// Call puts a function on the stream, such as a step of computation, or a wait for a
// device's own stream: what is behind it begins when it has returned nil. It runs
// on a goroutine of its own; on a stepped NIC, in Poll. The event says when it has
// returned, and with which error.
func (s *Stream) Call(f func() error) (*StreamEvent, error) {
	e := s.event()
	return e, s.put(streamItem{f: f, e: e})
}

// Record returns an event that comes when everything that was put on the stream before
// has ended, of one that is closed as well. Two records with nothing between them are
// the same event, so that MaxQueued need not bound them.
func (s *Stream) Record() *StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.queue); n > 0 && s.queue[n-1].records() {
		return s.queue[n-1].e
	}
	x := streamItem{e: s.event()}
	s.queue = append(s.queue, x)
	s.advance()
	return x.e
}

// Wait makes what is put on the stream from now on wait for an event of another one,
// of any context. It does not block. When that stream has failed, so does this.
func (s *Stream) Wait(e *StreamEvent) error { return s.put(streamItem{e: e, wait: true}) }

// Synchronize waits until everything that was put on the stream before has ended. Its
// error is the first of what failed since the last Synchronize, and the stream is good
// for new work then; or that of ctx; or [ErrStepped].
func (s *Stream) Synchronize(ctx context.Context) error {
	if s.c.nic.stepped {
		return ErrStepped
	}
	if err := s.Record().Wait(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return s.Reset()
}

// Reset makes a stream that has failed, and of which nothing is under way, good for
// new work, and returns why it failed.
func (s *Stream) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue)+len(s.running) > 0 {
		return nil
	}
	err := s.err
	s.err = nil
	return err
}

// Query reports whether everything that was put on the stream has ended.
func (s *Stream) Query() bool {
	s.pump()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)+len(s.running) == 0
}

// Close takes no more work; what is on the stream goes on. Closing twice is fine.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.pump()
	return nil
}

// abandon fails what has not begun of a stream whose context is being closed.
func (s *Stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.failed(errContextClosed)
	s.advance()
}

func (s *Stream) put(x streamItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("%w: the stream was closed, or its context", errNICClosed)
	case len(s.queue) >= s.c.cfg.MaxQueued:
		return fmt.Errorf("%w: %d things wait on the stream, the most that PeerConfig.MaxQueued allows", ErrBusy, len(s.queue))
	}
	s.queue = append(s.queue, x)
	s.advance()
	return nil
}

// pump begins what can be begun. The context forgets a stream that is closed, not
// before nothing is left that would have to be told of the context's end.
func (s *Stream) pump() {
	s.mu.Lock()
	s.advance()
	over := s.closed && len(s.queue)+len(s.running) == 0
	s.mu.Unlock()
	if over {
		s.c.mu.Lock()
		delete(s.c.streams, s)
		s.c.mu.Unlock()
	}
}

// advance notes what has ended and begins what can be begun. s.mu is held.
func (s *Stream) advance() {
	for s.retire(); len(s.queue) > 0; s.retire() {
		x := s.queue[0]
		if s.err == nil && !s.may(&x) {
			return
		}
		if s.err != nil && len(s.running) > 0 {
			return // what is behind ends behind it
		}
		if !s.begin(&x) {
			return
		}
		if s.queue[0] = (streamItem{}); len(s.queue) == 1 {
			s.queue = nil
		} else {
			s.queue = s.queue[1:]
		}
	}
}

// retire forgets what has ended, in order. s.mu is held.
func (s *Stream) retire() {
	n := 0
	for n < len(s.running) {
		x := &s.running[n]
		if x.h != nil {
			if !x.h.done.Load() {
				break
			}
			s.failed(x.h.err)
		} else {
			if !x.e.Query() {
				break
			}
			s.calls--
			s.failed(x.e.Err())
		}
		s.bytes -= x.n
		n++
	}
	clear(s.running[:n])
	if s.running = s.running[n:]; len(s.running) == 0 {
		s.running, s.reads = nil, false
		clear(s.lanes)
		s.lost.Store(false)
	}
}

// failed notes why the stream has failed. s.mu is held.
func (s *Stream) failed(err error) {
	if s.err == nil {
		s.err = err
	}
}

// may reports whether the next thing can be begun. s.mu is held.
func (s *Stream) may(x *streamItem) bool {
	switch {
	case x.wait:
		return x.e.query(s)
	case x.h == nil:
		return len(s.running) == 0
	case len(s.running) == 0:
		return true
	case s.calls > 0 || len(s.running) >= maxRunning || s.cfg.MaxBytes > 0 && s.bytes+x.n > s.cfg.MaxBytes:
		return false
	}
	return s.running[len(s.running)-1].h.p == x.h.p
}

// begin begins what is next, or fails it; false: not before what is under way has
// ended. s.mu is held.
func (s *Stream) begin(x *streamItem) bool {
	switch {
	case x.wait:
		if err := x.e.Err(); err != nil && s.err == nil {
			s.err = fmt.Errorf("the event that it waited for: %w", err)
		}
	case x.f != nil && s.err == nil:
		s.running = append(s.running, *x)
		s.calls++
		s.run(x)
	case x.h == nil:
		x.e.come(s.c.nic.nic.Now(), s.err)
	case s.err != nil:
		x.h.refuse(fmt.Errorf("%w: %w", ErrStream, s.err))
	default:
		return s.transfer(x)
	}
	return true
}

// run runs a call. s.mu is held.
func (s *Stream) run(x *streamItem) {
	c, f, e := s.c, x.f, x.e
	do := func() {
		end := c.Trace().Compute("call")
		err := f()
		end()
		e.come(c.nic.nic.Now(), err)
		s.pump()
	}
	if c.loop == nil {
		c.deferCall(do)
		return
	}
	go do()
}

// transfer is begin for a transfer. s.mu is held.
func (s *Stream) transfer(x *streamItem) bool {
	t := x.t
	t.Flags |= Ordered
	if s.reads && (t.Op == Write || t.Op == WriteImm) {
		t.Flags |= FenceBefore // its bytes may be those that were read
	}
	switch later, err := x.h.p.beginOn(s, x.h, t); {
	case later:
		return false
	case err != nil:
		x.h.refuse(err)
		s.failed(x.h.err)
		return true
	}
	s.reads = s.reads || t.Op == Read || t.Op.atomic()
	x.t = nil
	s.bytes += x.n
	s.running = append(s.running, *x)
	return true
}

// refuse ends a handle whose transfer was not begun.
func (h *Handle) refuse(err error) {
	h.p.mu.Lock()
	defer h.p.release()
	if !h.done.Load() {
		h.waits = false
		h.p.part(h, err, 0)
	}
}
