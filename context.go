package hixl

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/internal/dispatch"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/peerwire"
)

// ContextID names one incarnation of a context: no two have the same, so a peer
// that restarts is known to be another.
type ContextID [16]byte

// String returns it in hexadecimal.
func (id ContextID) String() string { return fmt.Sprintf("%x", id[:]) }

// Context is what a process shares with its peers over one NIC: a protection
// domain, regions, and the peers themselves. Its work on their behalf is done on
// the callers' goroutines, and on one of its own, the dispatcher: none belongs to
// a peer. On a stepped NIC there is no goroutine at all, see [Context.Poll]. All
// methods may be called from any goroutine.
type Context struct {
	// Set once.
	nic     *NIC
	owned   bool // the NIC is closed with the context
	cfg     PeerConfig
	id      ContextID
	pd      *PD
	inbox   *inbox
	words   slots // in which results of atomics land
	outbox  slots // messages that are too long to be sent inline
	chunks  slots // gathered writes
	pages   pagePool
	cache   regionCache
	counts  contextCounts
	tellers tellers
	up      atomic.Int64 // peers that are connected
	urgent  atomic.Bool  // there is an urgent stream
	trace   atomic.Pointer[Trace]
	reached atomic.Int64   // those of them that this side dialed
	loop    *dispatch.Loop // nil on a stepped NIC
	driver  *nic.Driver    // by which those who wait receive
	spare   sync.Pool      // of *Handle

	dispatcher

	mu        sync.Mutex
	rng       *rand.Rand               // guarded by mu, as all below
	dialed    map[netip.AddrPort]*Peer // by the address where it listens
	sessions  map[sessionKey]*Peer     // that dialed this side
	listeners []*PeerListener
	streams   map[*Stream]struct{} // that are open
	closed    bool
	names     registry
}

// sessionKey names the connections of one dialer.
type sessionKey struct {
	id      ContextID
	session uint64
}

// Open opens a NIC and a context on it, which [Context.Close] closes both. The
// error is that of [OpenNIC], or of [NIC.OpenContext].
func Open(cfg Config) (*Context, error) {
	n, err := OpenNIC(cfg)
	if err != nil {
		return nil, err
	}
	c, err := n.OpenContext(cfg.Peers)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	c.owned = true
	return c, nil
}

// OpenContext opens a context on a NIC that others use as well. The error unwraps
// to [ErrConfig], or is the system's when there is no memory.
func (n *NIC) OpenContext(cfg PeerConfig) (*Context, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Context{
		nic: n, cfg: cfg, pd: n.AllocPD(), driver: n.nic.NewDriver(), dialed: make(map[netip.AddrPort]*Peer), sessions: make(map[sessionKey]*Peer),
		streams: make(map[*Stream]struct{}),
	}
	c.spare.New = func() any { return new(Handle) }
	c.seed()
	var err error
	if c.inbox, err = newInbox(c); err != nil {
		return nil, err
	}
	c.words.init(c.pd, 8, 512, LocalWrite)
	c.outbox.init(c.pd, peerwire.MaxMessage, 32, 0)
	c.chunks.init(c.pd, uint32(cfg.Coalesce.Bytes), 8, 0)
	if !n.stepped {
		c.loop = dispatch.Start(n.nic.Now, c.turn)
	}
	return c, nil
}

// seed draws the incarnation, and starts the generator of what need not be secret.
func (c *Context) seed() {
	_, _ = cryptorand.Read(c.id[:]) // never fails (crypto/rand)
	if s := c.cfg.Seed; s != 0 {
		g := rand.New(rand.NewPCG(s, 0x68786c))
		binary.BigEndian.PutUint64(c.id[:], g.Uint64())
		binary.BigEndian.PutUint64(c.id[8:], g.Uint64())
	}
	c.rng = rand.New(rand.NewPCG(binary.BigEndian.Uint64(c.id[:]), binary.BigEndian.Uint64(c.id[8:])))
}

// NIC returns the NIC, whose queue pairs and regions others may use as well.
func (c *Context) NIC() *NIC { return c.nic }

// Address returns the NIC's address.
func (c *Context) Address() netip.Addr { return c.nic.Address() }

// ID returns the context's incarnation.
func (c *Context) ID() ContextID { return c.id }

// Close ends all peers, who are told, fails what is outstanding with [ErrClosed],
// and closes the NIC if Open opened it. Regions of Register stay to be deregistered
// where the NIC stays open. Closing twice is fine.
func (c *Context) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	peers := c.peersLocked()
	listeners := slices.Clone(c.listeners)
	streams := slices.Collect(maps.Keys(c.streams))
	clear(c.streams)
	c.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, s := range streams {
		s.abandon()
	}
	for _, p := range peers {
		p.shut(errContextClosed)
	}
	if c.loop != nil {
		c.loop.Stop()
	}
	c.tellers.close()
	for range 4 { // what is told of the end may have something to tell
		c.step(c.nic.nic.Now(), true)
	}
	var err error
	if c.owned {
		err = c.nic.Close()
	}
	return errors.Join(err, c.words.close(), c.outbox.close(), c.chunks.close(), c.inbox.close(), c.pages.close())
}

// errContextClosed is why everything of a closed context fails.
var errContextClosed = fmt.Errorf("%w: the context was closed", errNICClosed)

// peersLocked returns all peers, in an order that does not depend on the maps', so
// that runs replay. c.mu is held.
func (c *Context) peersLocked() []*Peer {
	all := make([]*Peer, 0, len(c.dialed)+len(c.sessions))
	for _, p := range c.dialed {
		all = append(all, p)
	}
	for _, p := range c.sessions {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Peer) int { return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.session, b.session)) })
	return all
}

// random returns random bits that need not be secret.
func (c *Context) random() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.Uint64()
}

// Register makes a region of b, as [PD.Register] does, in the context's protection
// domain: peers can reach it, also those that are connected already.
func (c *Context) Register(b []byte, access Access) (*Region, error) { return c.pd.Register(b, access) }

// RegisterPinned is Register that keeps the pages in memory, see [PD.RegisterPinned].
func (c *Context) RegisterPinned(b []byte, access Access) (*Region, error) {
	return c.pd.RegisterPinned(b, access)
}

// RegisterMemory makes a region of any memory, an accelerator's too, see
// [PD.RegisterMemory].
func (c *Context) RegisterMemory(m Memory, o MemoryOptions) (*Region, error) {
	return c.pd.RegisterMemory(m, o)
}

// PD returns the protection domain of the context's regions.
func (c *Context) PD() *PD { return c.pd }

// background is the context of what does not wait.
var background = context.Background()

// overContext has ended: it makes polls of calls that wait.
var overContext = func() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}()

// wire returns the id for package peerwire.
func (id ContextID) wire() peerwire.ID { return peerwire.ID(id) }
