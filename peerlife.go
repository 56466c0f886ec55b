package hixl

import (
	"errors"
	"fmt"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerlink"
	"github.com/gohixl/hixl/internal/peerwire"
)

// hear is told by a queue pair, under its lock, that work has ended.
func (p *Peer) hear() {
	p.news.Store(true)
	if p.parked.Load() > 0 {
		p.rouse()
	}
	if p.pushers.Load() > 0 {
		p.c.attend(p)
	}
}

// rouse wakes one of those who sleep.
func (p *Peer) rouse() {
	select {
	case p.wakeup <- struct{}{}:
	default:
	}
}

// release unlocks the peer and rings the doorbells of lanes that were posted to: a
// transport is called without the lock.
func (p *Peer) release() {
	now := p.posted
	switch len(p.bells) {
	case 0:
		p.mu.Unlock()
	case 1:
		l := p.bells[0]
		l.bell = false
		p.bells = p.bells[:0]
		p.mu.Unlock()
		l.conn.q.Ring(now)
	default:
		var ring [peerwire.MaxLanes]*lane
		n := copy(ring[:], p.bells)
		for _, l := range ring[:n] {
			l.bell = false
		}
		p.bells = p.bells[:0]
		p.mu.Unlock()
		for _, l := range ring[:n] {
			l.conn.q.Ring(now)
		}
	}
}

// want has somebody's need met: it dials if it is time to. p.mu is held.
func (p *Peer) want(now mono.Time) {
	if p.link.Want() {
		p.dial(now)
	}
}

// dial begins a new generation, by which the peer knows that nothing of older ones
// lands here any more: not before that is so. p.mu is held.
func (p *Peer) dial(now mono.Time) {
	if p.unsettled = p.c.nic.nic.LandingFrom(p.addr.Addr()); p.unsettled {
		p.rearm()
		return
	}
	p.tried = max(p.tried, p.gen) + 1
	g := &generation{n: p.tried, lanes: make([]*lane, p.c.cfg.QPs)}
	l := &lane{p: p, gen: g}
	g.lanes[0] = l
	p.next = g
	if err := l.dial(); err != nil {
		p.missed(now, g, err)
	}
	p.tell()
}

// missed: an attempt came to nothing. p.mu is held.
func (p *Peer) missed(now mono.Time, g *generation, err error) {
	if p.next != g {
		return
	}
	p.next = nil
	p.fails++
	if r := refusal(err); r != nil {
		err = r
	}
	p.err = err
	for _, l := range g.lanes {
		if l != nil {
			l.bury()
		}
	}
	p.link.Failed(now, p.c.random())
	if !p.link.Patient(now) {
		p.failQueue(p.down())
	}
	p.tell()
}

// refusal is what a context that refuses says.
func refusal(err error) error {
	var r *RejectedError
	if !errors.As(err, &r) || r.Reason != RejectConsumer {
		return nil
	}
	if why, ok := peerwire.DecodeRefusal(r.PrivateData); ok {
		return fmt.Errorf("%w: %v (%w)", ErrPeerRefused, why, err)
	}
	return nil
}

// connected: the first lane of a generation is up. p.mu is held.
func (p *Peer) connected(now mono.Time, g *generation) {
	id := p.id
	if !p.passive {
		var w peerwire.Welcome
		if err := w.Decode(g.lanes[0].conn.PrivateData()); err != nil {
			g.lanes[0].hangUp()
			p.missed(now, g, fmt.Errorf("%w: %w", ErrPeerRefused, err))
			return
		}
		id, g.credits = ContextID(w.ID), w.Credits
	}
	p.inc.granted(g.credits)
	if p.gen > 0 {
		p.c.counts.reconnects.Add(1)
	}
	p.next, p.cur, p.gen, p.err = nil, g, g.n, nil
	p.c.up.Add(1)
	if !p.passive {
		p.c.reached.Add(1)
		p.c.crowd()
	}
	p.used = now
	p.recognize(id)
	p.link.Connected()
	p.pulse.Start(now, p.c.cfg.KeepAlive, 0)
	for _, o := range p.old {
		p.fence(o) // it closed them before it answered, or is another incarnation
	}
	p.clean()
	if p.greeter != nil {
		p.greeter.deliver(p)
		p.greeter = nil
	}
	p.askAgain(now)
	p.pump(now)
	p.tell()
}

// recognize notes which incarnation the peer is.
func (p *Peer) recognize(id ContextID) {
	if p.id != (ContextID{}) && p.id != id {
		p.c.counts.restarts.Add(1)
		if !p.c.cfg.Recovery.FollowRestarts {
			for _, r := range p.names {
				r.restarted = true
				p.wither(r)
			}
		}
	}
	p.id = id
}

// breakUp ends the present generation: everything of it fails, and what was queued
// behind it too, so that no order changes. p.mu is held.
func (p *Peer) breakUp(now mono.Time, cause error) {
	g := p.cur
	if g == nil {
		return
	}
	p.cur = nil
	p.breaks++
	p.c.up.Add(-1)
	if !p.passive {
		p.c.reached.Add(-1)
	}
	g.broken, g.cause = true, cause
	p.err = cause
	p.old = append(p.old, g)
	p.pulse.Stop()
	p.told = nil // it asks again
	for _, l := range g.lanes {
		if l != nil {
			l.hangUp()
			l.reap()
		}
	}
	p.news.Store(true) // another look: memory that finishes late
	p.link.Failed(now, p.c.random())
	p.failGates(p.down())
	p.spill(now)
	p.failQueue(p.down())
	p.clean()
	p.tell()
}

// clean closes queue pairs of broken generations that are flushed, and forgets
// those generations that are fenced as well. p.mu is held.
func (p *Peer) clean() {
	kept := p.old[:0]
	for _, g := range p.old {
		flushed, gone := true, true
		for _, l := range g.lanes {
			if l == nil {
				continue
			}
			l.bury()
			flushed = flushed && l.closed
			gone = gone && (l.gone || !l.up)
		}
		if gone {
			p.fence(g)
		}
		if !flushed || !g.fenced {
			kept = append(kept, g)
		}
	}
	clear(p.old[len(kept):])
	p.old = kept
}

// fence notes that the other end takes nothing of a generation any more.
func (p *Peer) fence(g *generation) {
	if g.fenced {
		return
	}
	g.fenced = true
	if g.fence != nil {
		close(g.fence)
	}
}

// serve is the dispatcher's look after the peer.
func (p *Peer) serve(now mono.Time) {
	p.mu.Lock()
	if g := p.next; g != nil {
		p.inspect(now, g)
	}
	if g := p.cur; g != nil {
		p.inspect(now, g)
	}
	for _, g := range p.old {
		p.inspect(now, g)
	}
	p.reap(now)
	p.clean()
	p.report(now)
	p.rearm()
	p.release()
}

// inspect takes the news of a generation's connections. p.mu is held.
func (p *Peer) inspect(now mono.Time, g *generation) {
	for i, l := range g.lanes {
		if l == nil || !l.changed.Swap(false) {
			continue
		}
		s := l.conn.status()
		l.gone = l.gone || s.gone
		switch {
		case s.live && !l.up && !s.ended:
			l.up = true
			if i == 0 {
				p.connected(now, g)
			}
			l.conn.forgetPrivate()
		case s.ended && !l.up && i > 0:
			l.bury()
			g.lanes[i] = nil
		case s.ended && p.next == g:
			p.missed(now, g, s.err)
		case s.ended && p.cur == g:
			p.breakUp(now, s.err)
		}
	}
}

// reap ends what has ended, and begins what has waited for that. p.mu is held.
func (p *Peer) reap(now mono.Time) {
	if p.news.Swap(false) {
		p.follow(now, p.harvest())
	}
}

// harvest ends what has ended, and returns a lane of the present generation that has
// failed. p.mu is held.
func (p *Peer) harvest() (failed *lane) {
	for _, g := range p.old {
		for _, l := range g.lanes {
			if l != nil {
				l.reap()
			}
		}
	}
	if g := p.cur; g != nil {
		for _, l := range g.lanes {
			if l == nil {
				continue
			}
			if l.fault.Load() != nil && failed == nil {
				failed = l
				g.cause = l.failure(l.fault.Load().Status)
			}
			l.reap()
		}
	}
	return failed
}

// follow does what follows from the end of work. p.mu is held.
func (p *Peer) follow(now mono.Time, failed *lane) {
	if failed != nil {
		p.breakUp(now, failed.gen.cause)
	}
	p.pump(now)
}

// expire is the dispatcher's look when the peer's time has come.
func (p *Peer) expire(now mono.Time) {
	p.mu.Lock()
	p.reap(now) // what nobody waits for, such as the last probe
	dial, gaveUp := p.link.Expire(now)
	if dial || p.unsettled {
		p.dial(now)
	}
	if gaveUp {
		p.failQueue(p.down())
		p.tell()
		if p.passive { // it may never come back, as what it was
			defer p.forgotten()
		}
	}
	if r := p.waiting; r != nil {
		p.admitted(now, r)
	}
	p.spillDue(now)
	p.fenceDue(now)
	if p.cur != nil {
		p.beat(now)
	}
	p.rearm()
	p.release()
}

// beat is the look at a connection once a period, whether it is alive and whether
// it is in use. p.mu is held.
func (p *Peer) beat(now mono.Time) {
	at := p.pulse.Deadline()
	probe := p.pulse.Expire(now, p.signs())
	if !at.IsZero() && !now.Before(at) && now.Sub(p.used) >= p.c.cfg.KeepAlive {
		p.slim()
	}
	if probe {
		p.probe(now)
	}
}

// slim gives back the memory of a connection that this side has not used for long:
// most peers are idle. p.mu is held.
func (p *Peer) slim() {
	for _, l := range p.cur.lanes {
		if l != nil && l.idle() {
			l.trim()
		}
	}
	if len(p.bells) == 0 {
		p.bells = nil
	}
}

// forgotten ends a peer that dialed this side and has not come back. Its return, if
// it ever does, makes another.
func (p *Peer) forgotten() {
	p.c.forget(p)
	p.shut(errForgotten)
}

var errForgotten = newDown("it has not come back in time and was forgotten")

// rearm sets the time of the next look. p.mu is held.
func (p *Peer) rearm() {
	at := mono.Earliest(p.link.Deadline(), p.pulse.Deadline())
	at = mono.Earliest(at, p.nextFence())
	if s := p.stage; s != nil {
		at = mono.Earliest(at, s.Deadline())
	}
	if p.waiting != nil || p.unsettled {
		at = mono.Earliest(at, p.c.nic.nic.Now().Add(restPause))
	}
	if p.c.timers.set(p, at) {
		p.c.kick()
	}
}

// signs counts the signs of life of the present generation. p.mu is held.
func (p *Peer) signs() (n uint64) {
	for _, l := range p.cur.lanes {
		if l != nil {
			n += max(l.good.Load(), l.last.Load()) + l.signs.Load()
		}
	}
	return n
}

// shut ends the peer for good.
func (p *Peer) shut(why error) {
	p.mu.Lock()
	now := p.c.nic.nic.Now()
	p.breakUp(now, why)
	if g := p.next; g != nil {
		p.next = nil
		for _, l := range g.lanes {
			if l != nil {
				l.hangUp()
				l.bury()
			}
		}
	}
	p.link.Close()
	p.err, p.unsettled = why, false
	p.failQueue(p.down())
	p.inc.close()
	p.rearm()
	p.tell()
	p.release()
	p.c.attend(p)
}

// linkClosed reports whether the peer is closed. p.mu is held.
func (p *Peer) linkClosed() bool { return p.link.State() == peerlink.Closed }
