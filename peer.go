package hixl

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerlink"
	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/roce/wr"
)

// Peer is another context, over all connections with it, past and future ones. It
// is shared by all who use it. All methods may be called from any goroutine.
type Peer struct {
	// Set once.
	c       *Context
	passive bool           // it dialed this side
	addr    netip.AddrPort // where it listens, or dialed from
	session uint64
	key     sessionKey    // of one that dialed this side
	wakeup  chan struct{} // capacity 1: somebody who waits is to look for completions

	news     atomic.Bool  // a lane has completions
	parked   atomic.Int32 // callers that sleep on wakeup
	pushers  atomic.Int32 // operations that the dispatcher must end, since nobody may look
	telling  bool         // guarded by the context's tellers: it is among them
	attended atomic.Bool  // the dispatcher is to look after it
	alarm    alarm        // the timers'

	mu        sync.Mutex
	link      peerlink.Link // guarded by mu, as all below
	pulse     peerlink.Pulse
	id        ContextID // of the incarnation last seen
	gen       uint32    // of the newest generation that was up
	tried     uint32    // of the newest that was begun
	fails     uint64    // attempts that came to nothing
	breaks    uint32    // generations that broke
	unsettled bool      // a dial waits until memory of older lanes is at rest
	isNew     bool      // whether the dialer that said hello was not known
	cur       *generation
	next      *generation    // is being made
	old       []*generation  // not fenced, or not flushed
	queue     wr.Ring[piece] // waits for a lane or for the connection
	used      mono.Time      // last
	gates     []gate
	fencing   []fencing
	stage     *stage
	lost      error // of an unsignaled write, not told yet
	bells     []*lane
	crowd     []*Stream      // that wait for room in the queue
	posted    mono.Time      // when something was last posted
	err       error          // why it is down
	change    chan struct{}  // closed at the next change, if somebody asked
	greeter   *PeerListener  // that delivers it when it is first up
	waiting   *Request       // a dialer that waits until older lanes are at rest
	hello     peerwire.Hello // of the dialer

	names map[string]*RemoteRegion              // looked up, and not gone
	stale map[string]weak.Pointer[RemoteRegion] // looked up, and gone, as long as somebody has them
	asked map[uint32]*Handle                    // lookups without answer
	asks  uint32
	purge int32               // size of stale at which to look
	told  map[uint64]struct{} // regions of this side that it has looked up, by id

	inc incoming
}

// PeerState says whether a peer can be used.
type PeerState uint8

// The states of a peer.
const (
	// PeerIdle: not connected, and nobody has asked for it.
	PeerIdle PeerState = iota
	// PeerConnecting: being connected, for the first time or again. Work waits.
	PeerConnecting
	// PeerUp: connected.
	PeerUp
	// PeerDown: lost for longer than work may wait, see [RecoveryConfig].
	PeerDown
	// PeerClosed: closed, for good.
	PeerClosed
)

var peerStates = [...]string{"idle", "connecting", "up", "down", "closed"}

// String names the state.
func (s PeerState) String() string {
	if int(s) < len(peerStates) {
		return peerStates[s]
	}
	return fmt.Sprintf("PeerState(%d)", uint8(s))
}

// Address returns where the peer listens; of one that dialed this side, where it
// dialed from.
func (p *Peer) Address() netip.AddrPort { return p.addr }

// ListenAddress returns where the peer can be dialed: a peer that dialed this side comes
// back by itself, and cannot be called back as the same Peer, but [Context.Dial] of
// this address reaches the same context. ok is false if it listens nowhere.
func (p *Peer) ListenAddress() (at netip.AddrPort, ok bool) {
	if !p.passive {
		return p.addr, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return netip.AddrPortFrom(p.addr.Addr(), p.hello.Port), p.hello.Port != 0
}

// Context returns the context whose peer it is.
func (p *Peer) Context() *Context { return p.c }

// ID returns the incarnation of the peer that was last connected, zero before the
// first.
func (p *Peer) ID() ContextID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// Generation counts connections: that of the newest, 0 before the first.
func (p *Peer) Generation() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gen
}

// State returns the state now.
func (p *Peer) State() PeerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.link.State() {
	case peerlink.Up:
		return PeerUp
	case peerlink.Closed:
		return PeerClosed
	default:
	}
	switch now := p.c.nic.nic.Now(); {
	case p.link.Patient(now):
		return PeerConnecting
	case p.err != nil && p.gen > 0:
		return PeerDown
	}
	return PeerIdle
}

// Err returns why the peer is not connected, nil while it is and when nothing has
// failed. It is a *[PeerError].
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return nil
	}
	return p.down()
}

// down is the error of work for a peer that is not there. p.mu is held.
func (p *Peer) down() error {
	err := p.err
	if err == nil {
		err = errNotYet
	}
	return &PeerError{Peer: p.addr, Generation: p.gen, Err: err}
}

var errNotYet = fmt.Errorf("it has not come back: %w", ErrNotDialed)

// Changed returns a channel that is closed at the next change of State or
// Generation.
func (p *Peer) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed()
}

func (p *Peer) changed() <-chan struct{} {
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

// tell lets those who wait for a change look. p.mu is held.
func (p *Peer) tell() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// Close forgets the peer for all users of the context and tells the other end.
// What is outstanding fails with net.ErrClosed. A context that dials the same
// address again gets another Peer. Closing twice is fine.
func (p *Peer) Close() error {
	p.c.forget(p)
	p.shut(errPeerClosed)
	return nil
}

var errPeerClosed = fmt.Errorf("%w: the peer was closed", errNICClosed)

// Dial returns the peer that listens at address, "host:port" as in [NIC.Dial],
// connected. Whoever dials the same address shares the same peer; one's own address
// is fine. An error of a first connection is reported, with a *[PeerError]; a peer
// that was connected before is waited for until ctx ends.
func (c *Context) Dial(ctx context.Context, address string) (*Peer, error) {
	if c.nic.stepped {
		return nil, &ConnError{Op: "dial", Addr: address, Err: ErrStepped}
	}
	peers, err := c.nic.lookup(ctx, nil, "tcp", address)
	if err != nil {
		return nil, &ConnError{Op: "dial", Addr: address, Err: err}
	}
	for _, at := range peers {
		var p *Peer
		if p, err = c.Peer(at); err != nil {
			return nil, err
		}
		if err = p.Connect(ctx); err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// Peer returns the peer that listens at an address, without connecting: that
// happens when it is first used. The error is a *[ConnError].
func (c *Context) Peer(address netip.AddrPort) (*Peer, error) {
	address = netip.AddrPortFrom(address.Addr().Unmap().WithZone(""), address.Port())
	fail := func(err error) (*Peer, error) { return nil, &ConnError{Op: "dial", Addr: address.String(), Err: err} }
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.dialed[address]; p != nil {
		return p, nil
	}
	if err := c.admit(); err != nil {
		return fail(err)
	}
	p := c.newPeer(address, false, c.rng.Uint64())
	c.dialed[address] = p
	return p, nil
}

// admit refuses one more peer if there is no room. c.mu is held.
func (c *Context) admit() error {
	switch {
	case c.closed:
		return errContextClosed
	case len(c.dialed)+len(c.sessions) >= c.cfg.MaxPeers:
		return fmt.Errorf("%w: %d are known; close some or raise PeerConfig.MaxPeers", ErrTooManyPeers, c.cfg.MaxPeers)
	}
	return nil
}

func (c *Context) newPeer(addr netip.AddrPort, passive bool, session uint64) *Peer {
	p := &Peer{c: c, addr: addr, passive: passive, session: session, wakeup: make(chan struct{}, 1)}
	p.link.Init(c.cfg.link(passive))
	return p
}

// forget takes a peer out of the context's maps.
func (c *Context) forget(p *Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.passive {
		if c.dialed[p.addr] == p {
			delete(c.dialed, p.addr)
		}
		return
	}
	if c.sessions[p.key] == p {
		delete(c.sessions, p.key)
	}
}

// Connect connects the peer and returns when it can be used. See [Context.Dial] for
// its errors.
func (p *Peer) Connect(ctx context.Context) error {
	p.mu.Lock()
	fails := p.fails
	for {
		now := p.c.nic.nic.Now()
		switch s := p.link.State(); {
		case s == peerlink.Up:
			p.release()
			return nil
		case s == peerlink.Closed || p.fails != fails && (s == peerlink.Idle || p.passive):
			err := p.down()
			p.release()
			return err
		}
		p.want(now)
		changed := p.changed()
		p.rearm()
		p.release()
		select {
		case <-changed:
		case <-ctx.Done():
			p.mu.Lock()
			defer p.release()
			if p.link.State() == peerlink.Up {
				return nil
			}
			return &PeerError{Peer: p.addr, Generation: p.gen, Err: ctx.Err()}
		}
		p.mu.Lock()
	}
}

// credits is how many notifications there is room for. p.mu is held.
func (p *Peer) credits() uint32 { return uint32(p.inc.room(p.c.cfg.Notifications)) }

// welcome is what this side says to a dialer.
func (p *Peer) welcome(isNew bool) *peerwire.Welcome {
	return &peerwire.Welcome{ID: p.c.id.wire(), New: isNew, Credits: p.credits()}
}
