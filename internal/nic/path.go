package nic

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/rc"
)

// path is what the reliable connections to one destination share: the receive
// buffers at its two ends, which know nothing of queue pairs. What all of them
// have unanswered together is bounded; a queue pair that may send no more until
// others have been answered waits in a queue, and they take turns. So a thousand
// queue pairs with a little to send each fill no buffer that was made for one with
// much, and what they send leaves together.
type path struct {
	dst   netip.Addr // set once
	limit int64      // set once

	flight  atomic.Int64 // what is unanswered, weighed as windows are
	waiting atomic.Int32 // length of the queue

	mu          sync.Mutex
	users       int    // guarded by the table's lock
	first, last *Queue // the queue, linked by nextInPath; guarded by mu
}

// A turn is what a queue pair may send when it comes to the head of the queue:
// about a train. Turns begin when a few of them fit, so that they share a write.
const (
	turnBytes  = 64 << 10
	turnsBytes = 4 * turnBytes
	// pathShare is the part of a receive buffer that is filled: systems charge
	// for single packets twice what they carry, and others use the buffer too.
	pathShare = 4
	minPath   = 64 << 10
)

// DefaultPathWindow is what the reliable connections to one destination may have
// unanswered together, in bytes: as much as one alone.
const DefaultPathWindow = rc.DefaultWindowBytes

// ready reports whether the head of the queue may send. Whoever puts a queue pair
// into the queue, and whoever makes flight smaller, asks afterwards.
func (p *path) ready() bool {
	return p.waiting.Load() > 0 && p.flight.Load() <= p.limit-min(turnsBytes, p.limit/2)
}

// allows returns what a queue pair may send now.
func (p *path) allows(turn bool) uint64 {
	if !turn && p.waiting.Load() > 0 {
		return 0
	}
	room := p.limit - p.flight.Load()
	if turn {
		room = min(room, turnBytes)
	}
	return uint64(max(room, 0))
}

func (p *path) push(q *Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.inPath {
		return
	}
	q.inPath = true
	if p.last == nil {
		p.first = q
	} else {
		p.last.nextInPath = q
	}
	p.last = q
	p.waiting.Add(1)
}

// pop takes the head of the queue, nil when it is empty.
func (p *path) pop() *Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.first
	if q != nil {
		p.unlink(nil, q)
	}
	return q
}

// remove takes q out of the queue, wherever it stands.
func (p *path) remove(q *Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !q.inPath {
		return // most are not, and the queue may be long
	}
	var before *Queue
	for at := p.first; at != nil; before, at = at, at.nextInPath {
		if at == q {
			p.unlink(before, q)
			return
		}
	}
}

func (p *path) unlink(before, q *Queue) {
	if before == nil {
		p.first = q.nextInPath
	} else {
		before.nextInPath = q.nextInPath
	}
	if p.last == q {
		p.last = before
	}
	q.nextInPath, q.inPath = nil, false
	p.waiting.Add(-1)
}

// paths is the table of them, by destination.
type paths struct {
	mu    sync.Mutex
	table map[netip.Addr]*path // guarded by mu
}

// pathLimit is how much may be unanswered on a path when so much is wanted and the
// receive buffers at its ends have so many bytes, as far as that is known: the
// peer's is taken to be like ours.
func pathLimit(want, buffer int) int64 {
	if buffer > 0 {
		want = min(want, max(buffer/pathShare, minPath))
	}
	return int64(want)
}

func (t *paths) join(dst netip.Addr, limit int64) *path {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.table[dst]
	if p == nil {
		if t.table == nil {
			t.table = make(map[netip.Addr]*path)
		}
		p = &path{dst: dst, limit: limit}
		t.table[dst] = p
	}
	p.users++
	return p
}

func (t *paths) leave(p *path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(t.table, p.dst)
	}
}

// weigh tells the path how much of the queue pair is unanswered. Locked.
func (q *Queue) weigh() {
	if now := int64(q.InFlight()); q.path != nil && now != q.flight {
		q.path.flight.Add(now - q.flight)
		q.flight = now
	}
}

// follow joins the path of a reliable connection to its peer, and leaves the one
// before. Locked.
func (q *Queue) follow(v *qp.View) {
	if q.path != nil && q.path.dst == v.Peer {
		return
	}
	q.leavePath()
	if v.Type == qp.RC && v.Peer.IsValid() {
		q.path = q.nic.paths.join(v.Peer, q.nic.pathLimit)
	}
}

// leavePath takes what is unanswered of q, and q, off its path. Locked.
func (q *Queue) leavePath() {
	p := q.path
	if p == nil {
		return
	}
	p.remove(q)
	p.flight.Add(-q.flight)
	q.path, q.flight = nil, 0
	q.nic.paths.leave(p)
}
