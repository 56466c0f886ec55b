package hixl

import (
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/internal/mono"
)

// dispatcher is what a context does when nobody calls it: connections that come
// and go, messages of peers, timers, completions that somebody is to be told of.
type dispatcher struct {
	turnMu sync.Mutex // held by who runs; the scratch below is its

	due      []*Peer
	calls    []*Handle
	arrivals []arrival
	ready    []*Stream

	todo struct { // what is to be done; its lock is a leaf
		sync.Mutex
		peers    []*Peer   // guarded by it, as all below
		calls    []*Handle // whose Done function is to be called
		knocks   bool      // a listener has a request
		crowded  bool      // there may be too many connections
		streams  []*Stream // that may go on
		funcs    []func()  // of streams, on a stepped NIC
		arrivals []arrival
	}
	timers peerTimers
	idlers atomic.Int64 // mono.Time at which to look for idle peers, 0 never
}

// attend has the dispatcher look after p soon. It may be called with any lock held.
func (c *Context) attend(p *Peer) {
	if p.attended.Swap(true) {
		return
	}
	c.todo.Lock()
	c.todo.peers = append(c.todo.peers, p)
	c.todo.Unlock()
	c.kick()
}

func (c *Context) kick() {
	if c.loop != nil {
		c.loop.Kick()
	}
}

// call has the Done function of a handle called.
func (c *Context) call(h *Handle) {
	c.todo.Lock()
	c.todo.calls = append(c.todo.calls, h)
	c.todo.Unlock()
	c.kick()
}

// knock says that a listener has a request.
func (c *Context) knock() {
	c.todo.Lock()
	c.todo.knocks = true
	c.todo.Unlock()
	c.kick()
}

// crowd has the dispatcher look whether there are too many connections, with its
// next work.
func (c *Context) crowd() {
	c.todo.Lock()
	c.todo.crowded = true
	c.todo.Unlock()
}

// turn is one round of the dispatcher's goroutine.
func (c *Context) turn(now mono.Time) mono.Time {
	for c.step(now, true) {
		now = c.nic.nic.Now()
	}
	return c.wake()
}

// wake is when time alone makes work for the dispatcher; 0 is never.
func (c *Context) wake() mono.Time {
	return mono.Earliest(c.timers.next(), mono.Time(c.idlers.Load()))
}

// step does what there is to do at now and reports whether there was anything. Who
// only passes by leaves the calls of Done functions to the dispatcher.
func (c *Context) step(now mono.Time, calls bool) (worked bool) {
	c.turnMu.Lock()
	defer c.turnMu.Unlock()
	t := &c.todo
	t.Lock()
	c.due, t.peers = t.peers, c.due[:0]
	if calls {
		c.calls, t.calls = t.calls, c.calls[:0]
	}
	c.arrivals, t.arrivals = t.arrivals, c.arrivals[:0]
	ready := append(c.ready[:0], t.streams...)
	t.streams = t.streams[:0]
	for _, s := range ready {
		s.attended = false
	}
	funcs := t.funcs
	t.funcs = nil
	knocks, crowded := t.knocks, t.crowded
	t.knocks, t.crowded = false, false
	t.Unlock()
	worked = knocks || len(c.due)+len(c.calls)+len(c.arrivals)+len(ready)+len(funcs) > 0
	if knocks {
		c.answerAll(now)
	}
	for i := range c.arrivals {
		c.inbox.handle(now, &c.arrivals[i])
	}
	for _, p := range c.due {
		p.attended.Store(false)
		p.serve(now)
	}
	clear(c.due)
	for p := c.timers.due(now); p != nil; p = c.timers.due(now) {
		p.expire(now)
		worked = true
	}
	if at := mono.Time(c.idlers.Load()); crowded || !at.IsZero() && !now.Before(at) {
		c.idlers.Store(int64(c.evict(now)))
	}
	for _, s := range ready {
		s.pump()
	}
	clear(ready)
	c.ready = ready
	for _, f := range funcs {
		f()
	}
	for _, h := range c.calls {
		h.onDone(h)
	}
	clear(c.calls)
	c.calls = c.calls[:0]
	clear(c.arrivals)
	return worked
}

// Poll drives a context on a stepped NIC, and the NIC with it: it does what there
// is to do at now and reports whether there was anything. Functions given as Done
// are called from here.
func (c *Context) Poll(now Time) bool {
	worked := c.nic.Poll(now)
	return c.step(now, true) || worked
}

// Next returns when Poll wants to be called if no packet comes before; 0 is never.
func (c *Context) Next() Time {
	t := &c.todo
	t.Lock()
	pending := t.knocks || len(t.peers)+len(t.calls)+len(t.arrivals)+len(t.streams)+len(t.funcs) > 0
	t.Unlock()
	if pending {
		return c.nic.nic.Now()
	}
	return mono.Earliest(c.nic.Next(), c.wake())
}
