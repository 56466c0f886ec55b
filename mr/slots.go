package mr

import "sync/atomic"

// Layout of a key before the permutation: kind 1, slot 19, generation 12 bits.
const (
	genBits  = 12
	slotBits = 19
	kindR    = 1 << (slotBits + genBits) // set in an rkey, clear in an lkey

	genMask  = 1<<genBits - 1
	maxSlots = 1 << slotBits

	chunkBits  = 10
	chunkSlots = 1 << chunkBits

	// quarantine is how many freed slots wait before the first is reused while
	// there are slots that were never used.
	quarantine = 1 << 16
)

// slot is one place for a region.
type slot struct {
	region atomic.Pointer[Region]
	gen    uint32 // of the last registration; guarded by the table's mu
}

// slots is an array that grows without moving, so that it can be read while it
// grows. Only get may be called without the table's lock.
type slots struct {
	chunks [maxSlots / chunkSlots]atomic.Pointer[[chunkSlots]slot]
	used   uint32   // slots ever used
	free   slotFIFO // freed ones, oldest first
}

// get returns the region in slot i or nil.
func (s *slots) get(i uint32) *Region {
	c := s.chunks[i>>chunkBits].Load()
	if c == nil {
		return nil
	}
	return c[i&(chunkSlots-1)].region.Load()
}

// at returns slot i, which was taken before.
func (s *slots) at(i uint32) *slot {
	return &s.chunks[i>>chunkBits].Load()[i&(chunkSlots-1)]
}

// take finds an empty slot: a new one until enough freed ones wait, then the one
// that was freed longest ago.
func (s *slots) take() (uint32, bool) {
	if s.used < maxSlots && s.free.len() < quarantine {
		i := s.used
		if c := &s.chunks[i>>chunkBits]; c.Load() == nil {
			c.Store(new([chunkSlots]slot))
		}
		s.used++
		return i, true
	}
	return s.free.pop()
}

// slotFIFO is a growing ring of slot numbers.
type slotFIFO struct {
	ring       []uint32 // length a power of two
	head, tail uint32   // count up; tail-head is the length
}

func (f *slotFIFO) len() uint32 { return f.tail - f.head }

func (f *slotFIFO) push(i uint32) {
	if f.len() == uint32(len(f.ring)) {
		f.grow()
	}
	f.ring[f.tail&uint32(len(f.ring)-1)] = i
	f.tail++
}

func (f *slotFIFO) pop() (uint32, bool) {
	if f.len() == 0 {
		return 0, false
	}
	i := f.ring[f.head&uint32(len(f.ring)-1)]
	f.head++
	return i, true
}

func (f *slotFIFO) grow() {
	next := make([]uint32, max(64, 2*len(f.ring)))
	n := f.len()
	for k := range n {
		next[k] = f.ring[(f.head+k)&uint32(len(f.ring)-1)]
	}
	f.ring, f.head, f.tail = next, 0, n
}
