package hixl

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/pages"
	"github.com/gohixl/hixl/mr"
)

// PD is a protection domain: queue pairs reach only regions of their own.
type PD struct {
	nic *NIC
	pd  *mr.PD
	ids atomic.Uint64 // of regions
}

// Dealloc ends the domain. It is refused while regions or queue pairs live in it.
func (pd *PD) Dealloc() error { return pd.pd.Dealloc() }

// Register makes a region of b, which stays the application's and must not be
// freed or unmapped by other means before Deregister. Atomics need addresses that
// are 8-byte aligned. The error is an *mr.RegisterError, or mr.ErrPDClosed after
// Dealloc.
func (pd *PD) Register(b []byte, access Access) (*Region, error) {
	return pd.RegisterMemory(host.New(b), MemoryOptions{Access: access})
}

// PinError is memory that could not be pinned, see [PD.RegisterPinned].
type PinError = pages.PinError

// RegisterPinned is Register, and keeps the pages of b in memory until the region is
// deregistered, so that no transfer waits for one to be paged in. Without it pages are
// not pinned, and registering takes the same time whatever the size. The error may be a
// *[PinError], which names RLIMIT_MEMLOCK if that is in the way; on other systems than
// Linux it unwraps to errors.ErrUnsupported.
func (pd *PD) RegisterPinned(b []byte, access Access) (*Region, error) {
	r, err := pd.Register(b, access)
	if err != nil || len(b) == 0 {
		return r, err
	}
	unpin, err := pages.Pin(b)
	if err != nil {
		_ = r.Deregister(context.Background())
		return nil, err
	}
	r.unpin = sync.OnceFunc(unpin)
	return r, nil
}

// MemoryOptions choose what of a memory is registered, and how.
type MemoryOptions = mr.Options

// RegisterMemory makes a region of a range of any memory. The error is that of
// Register, or device.ErrClosed.
func (pd *PD) RegisterMemory(m Memory, o MemoryOptions) (*Region, error) {
	r, err := pd.pd.Register(m, o)
	if err != nil {
		return nil, err
	}
	return &Region{Region: r, pd: pd, id: pd.ids.Add(1)}, nil
}

// Alloc maps size bytes of zeroed, page-aligned memory outside the Go heap and
// registers them. Deregister, and Close of the NIC, unmap them: the slice that
// Bytes gave must not be touched afterwards. The error is [ErrClosed] after Close,
// the system's when there is no memory, device.ErrSize, or that of Register.
func (pd *PD) Alloc(size int, access Access) (*Region, error) {
	m, err := host.Alloc(size)
	if err != nil {
		return nil, err
	}
	r, err := pd.RegisterMemory(m, MemoryOptions{Access: access})
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	r.owned = m
	if !pd.nic.own(r) {
		_ = r.Deregister(context.Background())
		return nil, ErrClosed
	}
	return r, nil
}

// own makes the NIC unmap r's memory when it is closed, unless it is already.
func (n *NIC) own(r *Region) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owned == nil {
		return false
	}
	n.owned[r] = struct{}{}
	return true
}

// Region is a registered range of memory. Beside the methods here it has those of
// [mr.Region]: Addr and RKey are what a peer needs to reach it, SGE names a part
// of it in a work request, Bytes is the memory itself.
type Region struct {
	*mr.Region
	pd       *PD
	id       uint64                  // in its domain
	owner    atomic.Pointer[Context] // that has published it
	owned    *host.Memory            // to be unmapped
	pool     *pagePool               // or given to
	unpin    func()                  // if it is pinned
	unmapped atomic.Bool
}

// Bytes is the direct view of the region's bytes, nil when the CPU cannot address
// them, and after memory of [PD.Alloc] was unmapped. What it gave before must not
// be touched then.
func (r *Region) Bytes() []byte {
	if r.unmapped.Load() {
		return nil
	}
	return r.Region.Bytes()
}

// Deregister revokes the keys at once and waits until no byte of the region is
// being moved. When the context ends first, the keys stay revoked and it may be
// called again. Memory of [PD.Alloc] is unmapped at the end.
func (r *Region) Deregister(ctx context.Context) error {
	err := r.Region.Deregister(ctx)
	if c := r.owner.Swap(nil); c != nil {
		c.revoked(r)
	}
	if err == nil && r.unpin != nil {
		r.unpin()
	}
	if err != nil || r.owned == nil {
		return err
	}
	n := r.pd.nic
	n.mu.Lock()
	delete(n.owned, r)
	n.mu.Unlock()
	if r.unmapped.Swap(true) {
		return nil
	}
	if r.pool != nil {
		return r.pool.put(r.owned)
	}
	return r.owned.Close()
}
