package xdp

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is one of the four rings of a socket, shared with the kernel: of
// descriptors, or of addresses in the rings' memory. One side produces and the
// other consumes; a ring is used under its owner's lock.
type ring struct {
	mem        []byte
	producer   *uint32
	consumer   *uint32
	flags      *uint32
	descs      unsafe.Pointer
	size, mask uint32
	prod, cons uint32 // our view; what we own runs ahead of what is published
}

// descSize is the size of a descriptor.
const descSize = int(unsafe.Sizeof(unix.XDPDesc{}))

// mapRing maps a ring of size entries of width bytes each.
func mapRing(fd int, page int64, off *unix.XDPRingOffset, size, width int) (*ring, error) {
	mem, err := unix.Mmap(fd, page, int(off.Desc)+size*width, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	at := func(n uint64) *uint32 { return (*uint32)(unsafe.Pointer(&mem[n])) }
	return &ring{
		mem: mem, producer: at(off.Producer), consumer: at(off.Consumer), flags: at(off.Flags),
		descs: unsafe.Pointer(&mem[off.Desc]), size: uint32(size), mask: uint32(size - 1),
	}, nil
}

func (r *ring) unmap() {
	if r != nil && r.mem != nil {
		_ = unix.Munmap(r.mem)
		r.mem = nil
	}
}

// The producer's side.

// room returns how many entries can be added.
func (r *ring) room(want uint32) uint32 {
	if free := r.size - (r.prod - r.cons); free >= want {
		return free
	}
	r.cons = atomic.LoadUint32(r.consumer)
	return r.size - (r.prod - r.cons)
}

// publish shows the kernel what was added.
func (r *ring) publish() { atomic.StoreUint32(r.producer, r.prod) }

func (r *ring) addAddr(a uint64) {
	*(*uint64)(unsafe.Add(r.descs, uintptr(r.prod&r.mask)*8)) = a
	r.prod++
}

func (r *ring) addDesc(d unix.XDPDesc) {
	*(*unix.XDPDesc)(unsafe.Add(r.descs, int(r.prod&r.mask)*descSize)) = d
	r.prod++
}

// pending returns how many published entries the kernel has not taken.
func (r *ring) pending() uint32 {
	return atomic.LoadUint32(r.producer) - atomic.LoadUint32(r.consumer)
}

// The consumer's side.

// more returns how many entries can be taken.
func (r *ring) more() uint32 {
	r.prod = atomic.LoadUint32(r.producer)
	return r.prod - r.cons
}

// addr returns entry i of those that are ready.
func (r *ring) addr(i uint32) uint64 {
	return *(*uint64)(unsafe.Add(r.descs, uintptr((r.cons+i)&r.mask)*8))
}

func (r *ring) desc(i uint32) unix.XDPDesc {
	return *(*unix.XDPDesc)(unsafe.Add(r.descs, int((r.cons+i)&r.mask)*descSize))
}

// take gives the first n entries back to the kernel.
func (r *ring) take(n uint32) {
	r.cons += n
	atomic.StoreUint32(r.consumer, r.cons)
}

// wantsWakeup reports whether the kernel waits for a system call.
func (r *ring) wantsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// powerOfTwo returns the smallest one that is at least n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
