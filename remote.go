package hixl

import (
	"context"
	"fmt"
	"slices"
	"weak"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/mr"
)

// MaxRegionName is the longest name of a region, in bytes.
const MaxRegionName = peerwire.MaxName

// RemoteRegion is a region of a peer. It knows bounds and rights, so that what the
// peer would refuse is refused here, and whether it is stale: a region is, when its
// owner has told that it is deregistered, and when its owner is another incarnation
// than that which described it. Stale regions are refused with a *[RegionError].
//
// One that was looked up by name is looked up again by itself at each reconnection
// to the same incarnation, and follows the name. Once its owner has deregistered it,
// and after a restart unless it is to follow as well, see [RecoveryConfig], it is stale
// until Refresh, or until the name is looked up again.
type RemoteRegion struct {
	p    *Peer
	name string

	// Guarded by the peer's lock.
	d         Descriptor
	revoked   bool
	restarted bool // the peer, and it is not to be followed
}

// Import makes a region usable whose descriptor came by other means. The error is a
// *[RegionError] if it is of another incarnation than the one that is connected.
func (p *Peer) Import(d Descriptor) (*RemoteRegion, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &RemoteRegion{p: p, d: d}
	if err := r.fresh(); err != nil {
		return nil, r.failure("import", 0, 0, err)
	}
	return r, nil
}

// Peer returns the peer whose region it is.
func (r *RemoteRegion) Peer() *Peer { return r.p }

// Name returns the name by which it was looked up, "" for one that was imported.
func (r *RemoteRegion) Name() string { return r.name }

// Descriptor returns what is known of the region.
func (r *RemoteRegion) Descriptor() Descriptor {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return r.d
}

// Len returns the length in bytes.
func (r *RemoteRegion) Len() uint64 { return r.Descriptor().Len }

// Access returns what peers may do with it.
func (r *RemoteRegion) Access() Access { return r.Descriptor().Access }

// Stale reports whether it is known to be stale.
func (r *RemoteRegion) Stale() bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return r.fresh() != nil
}

// Refresh looks a named region up again, so that it can be used after a restart of
// its peer, and waits for the answer. The error is as for [Peer.Region]; that of
// one without name unwraps to [ErrStale] or is nil.
func (r *RemoteRegion) Refresh(ctx context.Context) error {
	if r.name == "" {
		r.p.mu.Lock()
		defer r.p.mu.Unlock()
		if err := r.fresh(); err != nil {
			return r.failure("refresh", 0, 0, err)
		}
		return nil
	}
	_, err := r.p.Region(ctx, r.name)
	return err
}

// fresh is why the region is stale, or nil. The peer's lock is held.
func (r *RemoteRegion) fresh() error {
	switch p := r.p; {
	case r.revoked:
		return ErrStale
	case r.restarted, r.d.Context != p.id && p.id != (ContextID{}):
		return fmt.Errorf("%w: %w", ErrStale, ErrPeerRestarted)
	}
	return nil
}

// needs are the rights that operations need.
var needs = [numTransferOps]Access{
	Read: RemoteRead, Write: RemoteWrite, WriteImm: RemoteWrite, CompareSwap: RemoteAtomic, FetchAdd: RemoteAtomic, AtomicStore: RemoteAtomic,
}

// check refuses n bytes at off for op. The peer's lock is held.
func (r *RemoteRegion) check(p *Peer, op TransferOp, off, n uint64) error {
	d := &r.d
	switch {
	case r.p != p:
		return r.failure(op.String(), off, n, fmt.Errorf("%w: it is a region of peer %v", mr.ErrPD, r.p.addr))
	case r.revoked || r.restarted || d.Context != p.id:
		if err := r.fresh(); err != nil {
			return r.failure(op.String(), off, n, err)
		}
	}
	switch {
	case off > d.Len || n > d.Len-off:
		return r.failure(op.String(), off, n, mr.ErrBounds)
	case d.Access&needs[op] != needs[op]:
		return r.failure(op.String(), off, n, fmt.Errorf("%w: it needs %v and has %v", mr.ErrPermission, needs[op], d.Access))
	case op.atomic() && (d.Addr+off)%device.WordSize != 0:
		return r.failure(op.String(), off, n, device.ErrAlign)
	}
	return nil
}

func (r *RemoteRegion) failure(op string, off, n uint64, err error) error {
	return &RegionError{Peer: r.p.addr, Region: r.label(), Op: op, Off: off, Len: n, Size: r.d.Len, Err: err}
}

// label is what errors call the region.
func (r *RemoteRegion) label() string {
	if r.name != "" {
		return r.name
	}
	return fmt.Sprintf("#%d", r.d.ID)
}

// Region looks up a region that the peer has published, connecting if need be, and
// returns when it has answered. The same name gives the same RemoteRegion. The error
// is a *[RegionError] that unwraps to [ErrNoRegion], a *[TransferError] or a
// *[PeerError].
func (p *Peer) Region(ctx context.Context, name string) (*RemoteRegion, error) {
	if p.c.nic.stepped {
		return nil, p.refuse(Lookup, ErrStepped)
	}
	h, err := p.StartRegion(name)
	if err != nil {
		return nil, err
	}
	if !h.await(ctx) {
		return nil, p.refuse(Lookup, ctx.Err())
	}
	return h.Region(), h.err
}

// StartRegion begins a lookup; [Handle.Region] is what it has found.
func (p *Peer) StartRegion(name string) (*Handle, error) {
	if len(name) == 0 || len(name) > MaxRegionName {
		return nil, fmt.Errorf("%w: a region's name has %d bytes, allowed: 1 to %d", ErrTransfer, len(name), MaxRegionName)
	}
	h := &Handle{p: p, op: Lookup, name: name}
	p.mu.Lock()
	defer p.release()
	now := p.c.nic.nic.Now()
	if err := p.ready(now, 1); err != nil {
		return nil, err
	}
	p.ask(now, h)
	return h, nil
}

// Region returns what a lookup has found, once it is done without error.
func (h *Handle) Region() *RemoteRegion {
	if h.op != Lookup || !h.done.Load() {
		return nil
	}
	return h.remote
}

// ask sends a lookup. It has ended when the question is acknowledged and answered.
// p.mu is held.
func (p *Peer) ask(now mono.Time, h *Handle) {
	if p.asked == nil {
		p.asked = make(map[uint32]*Handle)
	}
	p.asks++
	h.parts, p.asked[p.asks] = 2, h
	p.say(now, h, &peerwire.Message{Kind: peerwire.Lookup, Number: p.asks, Name: []byte(h.name)})
}

// askAgain looks up all names anew: what happened to them while the peer was away,
// nobody has told. p.mu is held.
func (p *Peer) askAgain(now mono.Time) {
	names := make([]string, 0, len(p.names))
	for name := range p.names {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.ask(now, &Handle{p: p, op: Lookup, name: name})
	}
}

// unanswered ends all lookups. p.mu is held.
func (p *Peer) unanswered(err error) {
	numbers := make([]uint32, 0, len(p.asked))
	for n := range p.asked {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		h := p.asked[n]
		delete(p.asked, n)
		p.part(h, err, 0)
	}
}

// forgetQuestion ends a lookup without its answer. p.mu is held.
func (p *Peer) forgetQuestion(h *Handle) {
	for n, asked := range p.asked {
		if asked == h {
			delete(p.asked, n)
			p.part(h, ErrCanceled, 0)
			return
		}
	}
}

// found takes the answer to a lookup. p.mu is held.
func (p *Peer) found(m *peerwire.Message) {
	h := p.asked[m.Number]
	if h == nil {
		return // given up meanwhile
	}
	delete(p.asked, m.Number)
	r := p.names[h.name]
	if !m.Known {
		if r != nil {
			r.revoked = true
			p.wither(r)
		}
		p.part(h, &RegionError{Peer: p.addr, Region: h.name, Op: Lookup.String(), Err: ErrNoRegion}, 0)
		return
	}
	if r == nil {
		r = p.revive(h.name)
	}
	r.d, r.revoked, r.restarted = descriptorOf(p.id, &m.Region), false, false
	h.remote = r
	p.part(h, nil, 0)
}

// gone notes that a region of the peer's is no more. p.mu is held.
func (p *Peer) gone(id uint64) {
	for _, r := range p.names {
		if r.d.ID == id {
			r.revoked = true
			p.wither(r)
		}
	}
}

// wither keeps a region that is gone only as long as somebody has it, who may look
// it up again. p.mu is held.
func (p *Peer) wither(r *RemoteRegion) {
	delete(p.names, r.name)
	if len(p.stale) >= int(p.purge) {
		for name, w := range p.stale {
			if w.Value() == nil {
				delete(p.stale, name)
			}
		}
		p.purge = int32(2*len(p.stale) + 16)
	}
	if p.stale == nil {
		p.stale = make(map[string]weak.Pointer[RemoteRegion])
	}
	p.stale[r.name] = weak.Make(r)
}

// revive returns the region of a name that has been found: the one that somebody
// has, or a new one. p.mu is held.
func (p *Peer) revive(name string) *RemoteRegion {
	r := p.stale[name].Value()
	if delete(p.stale, name); r == nil {
		r = &RemoteRegion{p: p, name: name}
	}
	if p.names == nil {
		p.names = make(map[string]*RemoteRegion)
	}
	p.names[name] = r
	return r
}
