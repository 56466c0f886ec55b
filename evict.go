package hixl

import (
	"cmp"
	"slices"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerlink"
)

// evictPart is the part of IdleAfter that lies at least between two looks for idle
// peers, however many become idle one by one.
const evictPart = 16

// evict disconnects peers that nobody uses, if there are too many, and says when to
// look again: when the next of them may have become idle; 0 is when one more is
// connected. It runs on the dispatcher.
func (c *Context) evict(now mono.Time) (again mono.Time) {
	if c.cfg.HighWater == 0 || int(c.reached.Load()) <= c.cfg.HighWater {
		return 0
	}
	type candidate struct {
		p    *Peer
		used mono.Time
	}
	c.mu.Lock()
	all := make([]*Peer, 0, len(c.dialed))
	for _, p := range c.dialed {
		all = append(all, p)
	}
	c.mu.Unlock()
	idle := make([]candidate, 0, len(all))
	for _, p := range all {
		used, up := p.usedUntil(now)
		switch at := used.Add(c.cfg.IdleAfter); {
		case !up:
		case now.Before(at):
			again = mono.Earliest(again, at)
		default:
			idle = append(idle, candidate{p, used})
		}
	}
	slices.SortFunc(idle, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.used, b.used), a.p.addr.Compare(b.p.addr))
	})
	for _, x := range idle {
		if int(c.reached.Load()) <= c.cfg.LowWater {
			break
		}
		x.p.rest(now)
	}
	if int(c.reached.Load()) <= c.cfg.HighWater {
		return 0
	}
	return max(again, now.Add(c.cfg.IdleAfter/evictPart))
}

// usedUntil returns when a peer was last used, now if it still is, and whether it is
// connected.
func (p *Peer) usedUntil(now mono.Time) (mono.Time, bool) {
	p.mu.Lock()
	defer p.release()
	p.reap(now)
	if !p.unused() {
		p.used = now
	}
	return p.used, p.link.State() == peerlink.Up
}

// unused reports whether nothing is outstanding. p.mu is held.
func (p *Peer) unused() bool {
	if p.cur == nil || p.queue.Len() > 0 || len(p.gates) > 0 || len(p.asked) > 0 || p.stage != nil && !p.stage.Empty() {
		return false
	}
	for _, l := range p.cur.lanes {
		if l != nil && !l.idle() {
			return false
		}
	}
	return true
}

// rest disconnects an idle peer. Its next use connects it again.
func (p *Peer) rest(now mono.Time) {
	p.mu.Lock()
	defer p.release()
	if p.cur == nil || !p.unused() {
		return
	}
	p.c.counts.evictions.Add(1)
	p.breakUp(now, errEvicted)
	p.link.Rest()
	p.err = nil
	p.rearm()
	p.tell()
}

var errEvicted = newDown("it was disconnected because nobody used it")
