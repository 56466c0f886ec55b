package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gohixl/hixl"
)

// view is what this engine knows of a remote one's registered memory.
type view struct {
	busy chan struct{} // holds a token while nobody reads the directory

	mu      sync.Mutex
	log     uint64 // guarded by mu, as all below: which directory
	next    uint64 // entries of it that are known
	spans   spans[uint64]
	regions map[uint64]*hixl.RemoteRegion // looked up
}

func newView() *view {
	v := &view{busy: make(chan struct{}, 1)}
	v.busy <- struct{}{}
	return v
}

// find returns the region of the peer that holds n bytes at addr, and the offset in
// it. What is not known is asked for, so that regions that were registered later
// are found.
func (v *view) find(ctx context.Context, c *hixl.Context, p *hixl.Peer, addr, n uint64) (*hixl.RemoteRegion, uint64, error) {
	for refreshed := false; ; refreshed = true {
		id, r, off, ok := v.known(addr, n)
		if ok && r != nil {
			return r, off, nil
		}
		if ok {
			r, err := v.lookup(ctx, p, id)
			if err == nil {
				return r, off, nil
			}
			if !errors.Is(err, hixl.ErrNoRegion) {
				return nil, 0, err
			}
		}
		if refreshed {
			return nil, 0, invalid("no region registered there holds %d bytes at %#x", n, addr)
		}
		if err := v.refresh(ctx, c, p); err != nil {
			return nil, 0, err
		}
	}
}

// known finds a range, and its region if that was looked up.
func (v *view) known(addr, n uint64) (id uint64, r *hixl.RemoteRegion, off uint64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		if id, off, ok = v.spans.find(addr, n); !ok {
			return 0, nil, 0, false
		}
		r = v.regions[id]
		if r == nil || !r.Stale() {
			return id, r, off, true
		}
		v.forget(id) // an older one may lie there as well
	}
}

// forget drops a range. v.mu is held.
func (v *view) forget(id uint64) {
	v.spans.remove(id)
	delete(v.regions, id)
}

// lookup asks for a region of the directory.
func (v *view) lookup(ctx context.Context, p *hixl.Peer, id uint64) (*hixl.RemoteRegion, error) {
	r, err := p.Region(ctx, regionName(id))
	v.mu.Lock()
	defer v.mu.Unlock()
	x, ok := v.spans.all[id]
	switch {
	case err == nil && ok && r.Len() != x.n:
		err = fmt.Errorf("region %d has %d bytes, its directory says %d", id, r.Len(), x.n)
	case err == nil:
		v.regions[id] = r
	case errors.Is(err, hixl.ErrNoRegion):
		v.forget(id)
	}
	return r, err
}

// refresh reads what is new in the directory.
func (v *view) refresh(ctx context.Context, c *hixl.Context, p *hixl.Peer) error {
	select {
	case <-v.busy:
		defer func() { v.busy <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	dir, err := p.Region(ctx, dirName)
	if errors.Is(err, hixl.ErrNoRegion) {
		return fmt.Errorf("the peer is no engine: %w", err)
	}
	if err != nil {
		return err
	}
	n, err := p.FetchAdd(ctx, dir, 0, 0, hixl.Ordered)
	if err != nil {
		return err
	}
	v.mu.Lock()
	if log := dir.Descriptor().ID; log != v.log || v.regions == nil {
		v.log, v.next, v.spans = log, 0, spans[uint64]{}
		v.regions = make(map[uint64]*hixl.RemoteRegion)
	}
	from := v.next
	v.mu.Unlock()
	if size := dir.Len(); size < dirHead || n > (size-dirHead)/dirEntry || n > dirEntries || n < from {
		return fmt.Errorf("the peer's directory of %d bytes claims %d entries after %d", dir.Len(), n, from)
	}
	if n == from {
		return nil
	}
	return v.fetch(ctx, c, p, dir, from, n)
}

// fetch reads entries from..n, in order behind the read of their count.
func (v *view) fetch(ctx context.Context, c *hixl.Context, p *hixl.Peer, dir *hixl.RemoteRegion, from, n uint64) error {
	size := (n - from) * dirEntry
	buf, err := c.Alloc(int(size), hixl.LocalWrite)
	if err != nil {
		return err
	}
	defer func() { _ = buf.Deregister(context.Background()) }() // a read that was given up lands nothing more
	if err := p.Read(ctx, hixl.Desc{Local: buf, Remote: dir, RemoteOff: dirHead + from*dirEntry, Len: size}, hixl.Ordered); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.apply(buf.Bytes()[:size]); err != nil {
		return fmt.Errorf("the peer's directory is damaged: %w", err)
	}
	v.next = n
	return nil
}

// apply takes entries. v.mu is held.
func (v *view) apply(b []byte) error {
	for ; len(b) >= dirEntry; b = b[dirEntry:] {
		x, err := decodeEntry(b)
		if err != nil {
			return err
		}
		if x.kind == entryAdded {
			v.spans.put(x.id, x.span)
		} else {
			v.forget(x.id)
		}
	}
	return nil
}
