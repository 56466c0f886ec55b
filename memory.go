package hixl

import (
	"context"

	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
)

// PD is a protection domain: queue pairs reach only regions of their own.
type PD struct {
	nic *NIC
	pd  *mr.PD
}

// Dealloc ends the domain. It is refused while regions or queue pairs live in it.
func (pd *PD) Dealloc() error { return pd.pd.Dealloc() }

// Register makes a region of b, which stays the application's and must not be
// freed or unmapped by other means before Deregister. Atomics need addresses that
// are 8-byte aligned.
func (pd *PD) Register(b []byte, access Access) (*Region, error) {
	return pd.RegisterMemory(host.New(b), MemoryOptions{Access: access})
}

// MemoryOptions choose what of a memory is registered, and how.
type MemoryOptions = mr.Options

// RegisterMemory makes a region of a range of any memory.
func (pd *PD) RegisterMemory(m Memory, o MemoryOptions) (*Region, error) {
	r, err := pd.pd.Register(m, o)
	if err != nil {
		return nil, err
	}
	return &Region{Region: r, pd: pd}, nil
}

// Alloc maps size bytes of zeroed, page-aligned memory outside the Go heap and
// registers them. Deregister, and Close of the NIC, unmap them: the slice that
// Bytes gave must not be touched afterwards.
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
	pd.nic.mu.Lock()
	defer pd.nic.mu.Unlock()
	if pd.nic.owned != nil {
		pd.nic.owned[r] = struct{}{}
	}
	return r, nil
}

// Region is a registered range of memory, see mr.Region for what it tells.
type Region struct {
	*mr.Region
	pd    *PD
	owned *host.Memory // to be unmapped
}

// Deregister revokes the keys at once and waits until no byte of the region is
// being moved. When the context ends first, the keys stay revoked and it may be
// called again. Memory of [PD.Alloc] is unmapped at the end.
func (r *Region) Deregister(ctx context.Context) error {
	if err := r.Region.Deregister(ctx); err != nil || r.owned == nil {
		return err
	}
	n := r.pd.nic
	n.mu.Lock()
	delete(n.owned, r)
	n.mu.Unlock()
	return r.owned.Close()
}
