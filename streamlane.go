package hixl

import (
	"errors"
	"slices"

	"github.com/gohixl/hixl/internal/mono"
)

// berth is where the work of a stream goes that is under way to a peer.
type berth struct {
	lane   uint8  // counted from 1
	breaks uint32 // of the peer, when the first of it was begun
}

// laneOf returns the lane, counted from 1, on which a stream's work goes, if it can be
// had. p.mu is held.
func (p *Peer) laneOf(now mono.Time, s *Stream) uint8 {
	want := 0
	switch n := p.c.cfg.QPs; {
	case s.cfg.Priority > 0 && n > 2:
		want = urgentLane
		p.c.urgent.Store(true)
	case s.cfg.Priority < 0:
		want = n - 1
	}
	if p.cur == nil || want >= len(p.cur.lanes) {
		return 1
	}
	if l := p.cur.lanes[want]; l == nil || !l.up {
		p.widen(now)
		return 1
	}
	return uint8(want + 1)
}

// urgentLane is the lane of urgent streams, where there are three or more.
const urgentLane = 1

// reserved reports whether a lane is kept free of unordered work. p.mu is held.
func (p *Peer) reserved(l *lane) bool {
	return l.index == urgentLane && p.c.cfg.QPs > 2 && p.c.urgent.Load()
}

// pinned returns the lane on which ordered work goes. p.mu is held.
func (p *Peer) pinned(h *Handle) *lane {
	if h != nil && h.lane > 1 && int(h.lane) <= len(p.cur.lanes) {
		if l := p.cur.lanes[h.lane-1]; l != nil {
			return l
		}
	}
	return p.cur.lanes[0]
}

// beginOn begins a transfer of a stream, on the lane where the work of the stream that
// has not ended is. later: some of that has failed, or will since its connection broke,
// and this must not take effect before the stream knows; or too much waits for the peer
// already.
func (p *Peer) beginOn(s *Stream, h *Handle, t *Transfer) (later bool, err error) {
	p.mu.Lock()
	defer p.release()
	if h.done.Load() {
		return false, h.err // canceled
	}
	b, ok := s.lanes[p]
	switch {
	case !ok:
		b = berth{p.laneOf(p.c.nic.nic.Now(), s), p.breaks}
		s.lanes[p] = b
	case b.breaks != p.breaks || s.lost.Load():
		return true, nil
	}
	h.lane, h.waits = b.lane, false
	err = p.beginLocked(h, t, t.Descs)
	if errors.Is(err, ErrBusy) && p.queue.Len() > 0 { // there will be room
		h.waits = true
		p.awaitRoom(s)
		return true, nil
	}
	return false, err
}

// awaitRoom has a stream looked after when less of the peer's work waits in software.
// p.mu is held.
func (p *Peer) awaitRoom(s *Stream) {
	if !slices.Contains(p.crowd, s) {
		p.crowd = append(p.crowd, s)
	}
}

// roomy lets the streams go on that wait for room, once half of it is free. p.mu is
// held.
func (p *Peer) roomy() {
	if len(p.crowd) == 0 || int(p.queue.Len()) > p.c.cfg.MaxQueued/2 {
		return
	}
	for _, s := range p.crowd {
		p.c.attendStream(s)
	}
	p.crowd = nil
}

// attendStream has the dispatcher look after a stream soon. It may be called with any
// lock held.
func (c *Context) attendStream(s *Stream) {
	c.todo.Lock()
	defer c.todo.Unlock()
	if !s.attended {
		s.attended = true
		c.todo.streams = append(c.todo.streams, s)
	}
	c.kick()
}

// deferCall has a stepped context call f in Poll.
func (c *Context) deferCall(f func()) {
	c.todo.Lock()
	defer c.todo.Unlock()
	c.todo.funcs = append(c.todo.funcs, f)
}

// passes reports whether a piece of an urgent stream may go before what waits in
// software: nothing of its own queue pair does, and nothing holds up everything. p.mu
// is held.
func (p *Peer) passes(x *piece) bool {
	if x.h == nil || int(x.h.lane) != urgentLane+1 || p.c.cfg.QPs <= 2 {
		return false
	}
	for i := p.queue.Head; i < p.queue.Tail; i++ {
		if w := p.queue.At(i); w.kind == pieceFence || w.h != nil && w.h.lane == x.h.lane {
			return false
		}
	}
	return true
}
