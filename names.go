package hixl

import (
	"fmt"
	"sync"

	"github.com/gohixl/hixl/mr"
)

// registry holds the regions that a context has published.
type registry struct {
	mu  sync.Mutex
	all map[string]*published // guarded by mu
	gen uint32                // guarded by mu; of the newest
}

type published struct {
	d      Descriptor
	region *Region
}

// Publish makes a region known to peers by a name of 1 to [MaxRegionName] bytes, see
// [Peer.Region]. Published again, a name means the new region from then on; who
// knows the old one can use it until it is deregistered. The error is a
// *[RegionError] for a region of another protection domain or one that is gone.
func (c *Context) Publish(name string, r *Region) error {
	bad := func(err error) error { return &RegionError{Region: name, Op: "publish", Size: r.Len(), Err: err} }
	switch {
	case len(name) == 0 || len(name) > MaxRegionName:
		return fmt.Errorf("%w: a region's name has %d bytes, allowed: 1 to %d", ErrTransfer, len(name), MaxRegionName)
	case r.pd.pd != c.pd.pd:
		return bad(mr.ErrPD)
	case !r.Valid():
		return bad(ErrStale)
	}
	n := &c.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[string]*published)
	}
	n.gen++
	x := &published{d: c.Describe(r), region: r}
	x.d.Generation = n.gen
	n.all[name] = x
	r.owner.Store(c)
	return nil
}

// Unpublish forgets a name. Who has looked it up can use the region until it is
// deregistered.
func (c *Context) Unpublish(name string) {
	c.names.mu.Lock()
	defer c.names.mu.Unlock()
	delete(c.names.all, name)
}

// lookup answers a peer, who is to be told when the region goes. p.mu is held.
func (c *Context) lookup(p *Peer, name []byte) (Descriptor, bool) {
	c.names.mu.Lock()
	defer c.names.mu.Unlock()
	x := c.names.all[string(name)]
	if x == nil || !x.region.Valid() {
		return Descriptor{}, false
	}
	if p.told == nil {
		p.told = make(map[uint64]struct{})
	}
	p.told[x.d.ID] = struct{}{}
	return x.d, true
}

// revoked tells those who know a region that it is gone.
func (c *Context) revoked(r *Region) {
	n := &c.names
	n.mu.Lock()
	for name, x := range n.all {
		if x.region == r {
			delete(n.all, name)
		}
	}
	n.mu.Unlock()
	c.mu.Lock()
	all := c.peersLocked()
	c.mu.Unlock()
	for _, p := range all {
		p.revoke(r.id)
	}
}
