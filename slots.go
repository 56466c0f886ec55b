package hixl

import "sync"

// slots is registered memory in pieces of one size, which grows by whole regions
// and keeps them. Piece n is at n%perSlab of slab n/perSlab.
type slots struct {
	pd            *PD
	size, perSlab uint32 // set once
	access        Access // set once

	mu    sync.Mutex
	slabs []*Region // guarded by mu
	spare []uint32  // guarded by mu
}

func (s *slots) init(pd *PD, size, perSlab uint32, access Access) {
	s.pd, s.size, s.perSlab, s.access = pd, size, perSlab, access
}

// take returns a piece, its region and its offset there.
func (s *slots) take() (n uint32, r *Region, off uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) == 0 {
		slab, err := s.pd.Register(make([]byte, s.size*s.perSlab), s.access)
		if err != nil {
			return 0, nil, 0, err
		}
		s.slabs = append(s.slabs, slab)
		last := uint32(len(s.slabs))*s.perSlab - 1
		for i := range s.perSlab {
			s.spare = append(s.spare, last-i)
		}
	}
	n = s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	r, off = s.at(n)
	return n, r, off, nil
}

// at is where a piece lies. s.mu is held.
func (s *slots) at(n uint32) (*Region, uint64) {
	return s.slabs[n/s.perSlab], uint64(n%s.perSlab) * uint64(s.size)
}

// put gives a piece back.
func (s *slots) put(n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, n)
}

// bytes is a piece's memory, of a piece that was taken.
func (s *slots) bytes(n uint32) []byte {
	s.mu.Lock()
	r, off := s.at(n)
	s.mu.Unlock()
	end := off + uint64(s.size)
	return r.Bytes()[off:end:end]
}

func (s *slots) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.slabs {
		if e := r.Deregister(overContext); e != nil && err == nil {
			err = e
		}
	}
	s.slabs, s.spare = nil, nil
	return err
}
