package mr

import (
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/device"
)

// Region is a registered range of a memory. All methods may be called from any
// goroutine, and stay legal after Deregister.
type Region struct {
	// Set once, before the region is in the table.
	pd         *PD
	mem        device.Memory
	view       []byte // nil when the CPU cannot address it
	memOff     uint64
	base, size uint64
	access     Access
	plain      uint32 // lkey before the permutation
	lkey, rkey uint32

	state atomic.Uint64 // see the bits below

	mu   sync.Mutex
	idle chan struct{} // made by the first Deregister; closed when revoked and nothing is lent
}

// Bits of Region.state. Below them counts what is lent.
const (
	revoked    = 1 << 63     // deregistered: nothing may be acquired
	invalid    = 1 << 62     // remote access has ended
	lentMask   = invalid - 1 // the count
	stateFlags = revoked | invalid
)

func (r *Region) slot() uint32 { return r.plain >> genBits }

// Addr is the address by which work requests and peers name the first byte (iova).
func (r *Region) Addr() uint64 { return r.base }

// Len is the length in bytes.
func (r *Region) Len() uint64 { return r.size }

// LKey names the region in local work requests. Never 0.
func (r *Region) LKey() uint32 { return r.lkey }

// RKey names the region in a peer's requests. Never 0, even when the region
// grants nothing to peers.
func (r *Region) RKey() uint32 { return r.rkey }

// Access is what was granted at registration.
func (r *Region) Access() Access { return r.access }

// PD is the region's protection domain.
func (r *Region) PD() *PD { return r.pd }

// Memory is the memory the region is a range of.
func (r *Region) Memory() device.Memory { return r.mem }

// MemOff is the offset of the region's first byte in Memory.
func (r *Region) MemOff() uint64 { return r.memOff }

// Bytes is the direct view of the region's bytes, nil when the CPU cannot
// address them. It must not be touched after Deregister.
func (r *Region) Bytes() []byte { return r.view }

// Valid reports whether the region may still be used locally, that is whether
// Deregister was not called. It may change at any time; Acquire is what holds.
func (r *Region) Valid() bool { return r.state.Load()&revoked == 0 }

// SGE names n bytes of the region from off on for a work request. Nothing is
// checked here; posting checks.
func (r *Region) SGE(off uint64, n uint32) SGE {
	return SGE{Addr: r.base + off, Length: n, LKey: r.lkey}
}

// Acquire lends the region's memory for a transfer and reports whether it may
// go on; each true is followed by one Release. It fails once the region is
// being deregistered. It takes no lock.
func (r *Region) Acquire() bool { return r.acquire(revoked) }

// AcquireRemote is Acquire on behalf of a peer: it fails also once the rkey was
// invalidated, in the middle of a message too.
func (r *Region) AcquireRemote() bool { return r.acquire(revoked | invalid) }

func (r *Region) acquire(barred uint64) bool {
	for {
		s := r.state.Load()
		if s&barred != 0 {
			return false
		}
		if r.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// Release ends one Acquire. It panics when there was none.
func (r *Region) Release() {
	for {
		s := r.state.Load()
		if s&lentMask == 0 {
			panic("mr: Release without Acquire")
		}
		if !r.state.CompareAndSwap(s, s-1) {
			continue
		}
		if s&revoked != 0 && s&lentMask == 1 {
			r.finish()
		}
		return
	}
}

// Lent is how many transfers hold the region now.
func (r *Region) Lent() int { return int(r.state.Load() & lentMask) }

// Invalidate ends the peers' access by this region's rkey for good; local use
// goes on. It reports whether access had not ended before. Transfers that a
// peer started run on until their next AcquireRemote.
func (r *Region) Invalidate() bool {
	return r.state.Or(invalid)&stateFlags == 0
}
