package hixl

import (
	"cmp"
	"slices"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerlink"
)

// evict disconnects peers that nobody uses, if there are too many. It runs on the
// dispatcher, when one more is connected and when some may have become idle.
func (c *Context) evict(now mono.Time) {
	if c.cfg.HighWater == 0 || int(c.up.Load()) <= c.cfg.HighWater {
		return
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
		if used, ok := p.idleSince(); ok && !now.Before(used.Add(c.cfg.IdleAfter)) {
			idle = append(idle, candidate{p, used})
		}
	}
	slices.SortFunc(idle, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.used, b.used), a.p.addr.Compare(b.p.addr))
	})
	for _, x := range idle {
		if int(c.up.Load()) <= c.cfg.LowWater {
			return
		}
		x.p.rest(now)
	}
}

// idleSince returns when an idle, connected peer was last used.
func (p *Peer) idleSince() (mono.Time, bool) {
	p.mu.Lock()
	defer p.release()
	p.reap(p.c.nic.nic.Now())
	return p.used, p.link.State() == peerlink.Up && p.unused()
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
