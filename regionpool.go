package hixl

import (
	"context"
	"fmt"
	"sync"

	"github.com/gohixl/hixl/internal/nic"
)

// Slice is a range of a local region.
type Slice struct {
	Region *Region
	Off    uint64
	Len    uint64
}

// Slice returns n bytes of the region from off on. Nothing is checked here; what
// uses it checks.
func (r *Region) Slice(off, n uint64) Slice { return Slice{Region: r, Off: off, Len: n} }

// Bytes is the memory itself, nil when the CPU cannot address it.
func (s Slice) Bytes() []byte {
	b := s.Region.Bytes()
	if b == nil {
		return nil
	}
	return b[s.Off : s.Off+s.Len : s.Off+s.Len]
}

// To returns the piece of a transfer that moves s, to or from a place in a remote
// region.
func (s Slice) To(remote *RemoteRegion, off uint64) Desc {
	return Desc{Local: s.Region, LocalOff: s.Off, Len: s.Len, Remote: remote, RemoteOff: off}
}

// RegionPool hands out equal pieces of one region, which costs no registration: for
// buffers that live shortly. A peer that knows the keys of one piece can reach
// all. All methods may be called from any goroutine.
type RegionPool struct {
	r      *Region
	size   uint64
	pieces int

	mu   sync.Mutex
	free []uint32 // guarded by mu
}

// NewRegionPool makes a pool of pieces of size bytes each; where one begins is a
// multiple of 64. The error is that of [Context.Alloc], or unwraps to [ErrConfig].
func (c *Context) NewRegionPool(size, pieces int, access Access) (*RegionPool, error) {
	if size < 1 || pieces < 1 || size > largestClass || pieces > largestClass/64 {
		return nil, &nic.ConfigError{Field: "RegionPool", Value: fmt.Sprintf("%d pieces of %d bytes", pieces, size), Allowed: "1 or more of each, of at most 1 GiB"}
	}
	p := &RegionPool{size: uint64(size), pieces: pieces}
	stride := p.stride()
	var err error
	if p.r, err = c.Alloc(int(stride)*pieces, access); err != nil {
		return nil, err
	}
	for i := pieces - 1; i >= 0; i-- {
		p.free = append(p.free, uint32(i))
	}
	return p, nil
}

func (p *RegionPool) stride() uint64 { return (p.size + 63) &^ 63 }

// Region returns the region whose pieces they are.
func (p *RegionPool) Region() *Region { return p.r }

// Get takes a piece; false: all are taken. Its bytes are what was left there.
func (p *RegionPool) Get() (Slice, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return Slice{}, false
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return p.r.Slice(uint64(n)*p.stride(), p.size), true
}

// Put gives a piece back, which no transfer may use any more. One that is not the
// pool's, or is there already, is a mistake that panics.
func (p *RegionPool) Put(s Slice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Region != p.r || s.Off%p.stride() != 0 || len(p.free) == p.pieces {
		panic("hixl: Put of a slice that is not the pool's")
	}
	p.free = append(p.free, uint32(s.Off/p.stride()))
}

// Close deregisters the region, see [Region.Deregister].
func (p *RegionPool) Close(ctx context.Context) error { return p.r.Deregister(ctx) }
