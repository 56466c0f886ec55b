package hixl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// tellers are the peers of which notifications wait, once somebody has asked for them.
// Its lock is a leaf.
type tellers struct {
	on atomic.Bool // somebody has asked

	mu      sync.Mutex
	peers   []*Peer       // guarded by mu, as all below
	arrived chan struct{} // closed at the next arrival, if somebody waits
	closed  bool
}

// add notes that a peer has told something.
func (t *tellers) add(p *Peer) {
	if !t.on.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.telling || t.closed {
		return
	}
	p.telling = true
	t.peers = append(t.peers, p)
	t.wake()
}

func (t *tellers) wake() {
	if t.arrived != nil {
		close(t.arrived)
		t.arrived = nil
	}
}

// take returns the peer that has waited longest, or what is closed when there is one.
func (t *tellers) take() (p *Peer, arrived <-chan struct{}, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.peers) == 0 {
		if t.arrived == nil {
			t.arrived = make(chan struct{})
		}
		return nil, t.arrived, t.closed
	}
	p = t.peers[0]
	t.peers = slices.Delete(t.peers, 0, 1)
	p.telling = false
	return p, nil, false
}

func (t *tellers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}

// NextNotification waits for the next notification or immediate of any peer, and
// returns both: for servers of many. Peers take turns. A context that has ended makes
// it a poll. The error is that of ctx, or unwraps to [ErrClosed]. See
// [Peer.Notifications], which may be used beside it.
func (c *Context) NextNotification(ctx context.Context) (*Peer, Notification, error) {
	t := &c.tellers
	if !t.on.Swap(true) { // what has arrived before
		c.mu.Lock()
		peers := c.peersLocked()
		c.mu.Unlock()
		for _, p := range peers {
			t.add(p)
		}
	}
	for try := 0; ; {
		p, arrived, closed := t.take()
		if p != nil {
			n, ok, due, _ := p.inc.take(c.cfg.Notifications)
			if !ok {
				continue
			}
			if due {
				c.attend(p)
			}
			t.add(p) // behind the others
			return p, n, nil
		}
		if closed {
			return nil, Notification{}, errContextClosed
		}
		if err := ctx.Err(); err != nil {
			return nil, Notification{}, err
		}
		if c.progress(&try) {
			continue
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
}
