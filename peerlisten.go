package hixl

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerwire"
)

// restPause is how often it is looked whether the bytes of an older connection are
// all in memory, before a newer one is accepted.
const restPause = time.Millisecond

// PeerListener takes the peers that dial a context.
type PeerListener struct {
	c *Context
	l *Listener

	mu      sync.Mutex
	ready   []*Peer       // guarded by mu; not taken
	arrived chan struct{} // guarded by mu; closed at the next arrival, if somebody waits
	closed  bool          // guarded by mu
}

// maxReady bounds the peers that wait for Accept.
const maxReady = 1024

// Listen lets other contexts dial this one at address, see [NIC.Listen]. They are
// served from the moment they are connected, whether Accept takes them or not. The
// error is a *[ConnError].
func (c *Context) Listen(ctx context.Context, address string) (*PeerListener, error) {
	l, err := c.nic.Listen(ctx, address, ListenConfig{Backlog: c.cfg.MaxPeers, notify: c.knock})
	if err != nil {
		return nil, err
	}
	pl := &PeerListener{c: c, l: l}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		_ = l.Close()
		return nil, &ConnError{Op: "listen", Addr: address, Err: errContextClosed}
	}
	c.listeners = append(c.listeners, pl)
	c.mu.Unlock()
	c.knock()
	return pl, nil
}

// port is where this context can be dialed, 0 nowhere.
func (c *Context) port() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) == 0 {
		return 0
	}
	return c.listeners[0].l.Addr().Port()
}

// Addr returns the NIC's address and the port.
func (l *PeerListener) Addr() netip.AddrPort { return l.l.Addr() }

// Accept waits for a peer that has dialed this context for the first time; one that
// comes back is not delivered again, unless it was away for longer than
// RecoveryConfig.GiveUp: then the Peer it was is closed, and it is another. At most 1024 wait, others are not delivered. A
// context that has ended makes it a poll. The error is a *[ConnError].
func (l *PeerListener) Accept(ctx context.Context) (*Peer, error) {
	fail := func(err error) (*Peer, error) {
		return nil, &ConnError{Op: "accept", Addr: l.Addr().String(), Err: err}
	}
	for {
		l.mu.Lock()
		if len(l.ready) > 0 {
			p := l.ready[0]
			l.ready = l.ready[1:]
			l.mu.Unlock()
			return p, nil
		}
		if l.closed {
			l.mu.Unlock()
			return fail(net.ErrClosed)
		}
		if l.arrived == nil {
			l.arrived = make(chan struct{})
		}
		arrived := l.arrived
		l.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
}

// deliver gives a peer to Accept.
func (l *PeerListener) deliver(p *Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.ready) >= maxReady {
		return
	}
	l.ready = append(l.ready, p)
	l.wake()
}

func (l *PeerListener) wake() {
	if l.arrived != nil {
		close(l.arrived)
		l.arrived = nil
	}
}

// Close stops listening. Peers that are connected stay; once they are lost they
// cannot come back. Closing twice is fine.
func (l *PeerListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.wake()
	l.mu.Unlock()
	l.c.mu.Lock()
	l.c.listeners = slices.DeleteFunc(l.c.listeners, func(x *PeerListener) bool { return x == l })
	l.c.mu.Unlock()
	return l.l.Close()
}

// answerAll decides about all requests that there are.
func (c *Context) answerAll(now mono.Time) {
	c.mu.Lock()
	listeners := slices.Clone(c.listeners)
	c.mu.Unlock()
	for _, l := range listeners {
		for {
			r, err := l.l.AcceptRequest(overContext)
			if err != nil {
				break
			}
			c.answer(now, l, r)
		}
	}
}

func refuseRequest(r *Request, why peerwire.Refusal) { _ = r.Reject(why.Append(nil)) }

// answer decides about a request.
func (c *Context) answer(now mono.Time, l *PeerListener, r *Request) {
	var h peerwire.Hello
	if err := h.Decode(r.PrivateData()); err != nil || r.Offer().Type != RC {
		refuseRequest(r, peerwire.RefusedVersion)
		return
	}
	c.mu.Lock()
	key := sessionKey{ContextID(h.ID), h.Session}
	p, isNew := c.sessions[key], false
	switch {
	case p != nil:
	case h.Lane > 0:
		c.mu.Unlock()
		refuseRequest(r, peerwire.RefusedSession)
		return
	case c.admit() != nil:
		c.mu.Unlock()
		refuseRequest(r, peerwire.RefusedPeers)
		return
	default:
		p, isNew = c.newPeer(r.RemoteAddr(), true, h.Session), true
		p.greeter, p.id, p.key = l, key.id, key
		c.sessions[key] = p
	}
	c.mu.Unlock()
	p.mu.Lock()
	defer p.release()
	if h.Lane > 0 {
		p.join(r, &h)
		return
	}
	p.meet(now, r, &h, isNew)
}

// meet accepts the first lane of a generation. The dialer has given up all older
// ones; so does this side before it answers, by which the dialer knows that nothing
// of them lands here any more. p.mu is held.
func (p *Peer) meet(now mono.Time, r *Request, h *peerwire.Hello, isNew bool) {
	if h.Generation <= p.gen || p.next != nil && h.Generation <= p.next.n || p.linkClosed() {
		refuseRequest(r, peerwire.RefusedOld)
		return
	}
	p.breakUp(now, errSuperseded)
	if g := p.next; g != nil {
		p.next = nil
		for _, l := range g.lanes {
			if l != nil {
				l.hangUp()
				l.bury()
			}
		}
	}
	p.hello, p.isNew, p.waiting = *h, isNew, r
	p.admitted(now, r)
	p.rearm()
}

// errSuperseded is why work of an accepted connection failed whose peer has made a
// newer one.
var errSuperseded = newDown("the peer has connected anew")

// admitted accepts a request once nothing of older connections is on its way into
// memory that finishes late: be they this peer's, or those of one that was forgotten
// or closed, here or by another context on this NIC. p.mu is held.
func (p *Peer) admitted(now mono.Time, r *Request) {
	if p.c.nic.nic.LandingFrom(r.RemoteAddr().Addr()) {
		return
	}
	p.waiting = nil
	h := &p.hello
	g := &generation{n: h.Generation, lanes: make([]*lane, h.Lanes), credits: h.Credits}
	l := &lane{p: p, gen: g}
	g.lanes[0] = l
	p.next = g
	if err := l.accept(r, p.welcome(p.isNew)); err != nil {
		_ = r.Reject(peerwire.RefusedClosing.Append(nil)) // refused if it is over
		p.missed(now, g, err)
	}
}

// join accepts a further lane. p.mu is held.
func (p *Peer) join(r *Request, h *peerwire.Hello) {
	g := p.cur
	if g == nil {
		g = p.next
	}
	if g == nil || g.n != h.Generation || int(h.Lane) >= len(g.lanes) || g.lanes[h.Lane] != nil {
		refuseRequest(r, peerwire.RefusedSession)
		return
	}
	l := &lane{p: p, gen: g, index: int(h.Lane)}
	if l.accept(r, &peerwire.Welcome{ID: p.c.id.wire()}) == nil {
		g.lanes[h.Lane] = l
	}
}
