package hixl

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gohixl/hixl/mr"
)

// registry holds the regions that a context has published.
type registry struct {
	mu   sync.Mutex
	all  map[string]*published // guarded by mu
	gens map[string]uint32     // guarded by mu; of the last one of each name
}

type published struct {
	d      Descriptor
	region *Region
	asked  map[*Peer]struct{} // who knows it
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
		n.all, n.gens = make(map[string]*published), make(map[string]uint32)
	}
	n.gens[name]++
	x := &published{d: c.Describe(r), region: r, asked: make(map[*Peer]struct{})}
	x.d.Generation = n.gens[name]
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

// lookup answers a peer.
func (c *Context) lookup(p *Peer, name []byte) (Descriptor, bool) {
	c.names.mu.Lock()
	defer c.names.mu.Unlock()
	x := c.names.all[string(name)]
	if x == nil || !x.region.Valid() {
		return Descriptor{}, false
	}
	x.asked[p] = struct{}{}
	return x.d, true
}

// revoked tells those who know a region that it is gone.
func (c *Context) revoked(r *Region) {
	var tell []*Peer
	n := &c.names
	n.mu.Lock()
	for name, x := range n.all {
		if x.region == r {
			for p := range x.asked {
				tell = append(tell, p)
			}
			delete(n.all, name)
		}
	}
	n.mu.Unlock()
	slices.SortFunc(tell, func(a, b *Peer) int { return a.addr.Compare(b.addr) })
	for _, p := range slices.Compact(tell) {
		p.revoke(r.id)
	}
}
