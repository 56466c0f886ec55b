package engine

import (
	"cmp"
	"slices"
	"sort"
)

// spans finds, among ranges of addresses that may overlap, one that holds another.
// Changes are cheap; the first search after some sorts.
type spans[K comparable] struct {
	all    map[K]span
	sorted []indexed[K] // by start, valid unless dirty
	dirty  bool
}

// span is n bytes from addr on; addr+n does not wrap.
type span struct{ addr, n uint64 }

type indexed[K comparable] struct {
	span
	key K
	end uint64 // the largest of this and all before it
}

func (s *spans[K]) put(k K, x span) {
	if s.all == nil {
		s.all = make(map[K]span)
	}
	s.all[k], s.dirty = x, true
}

func (s *spans[K]) remove(k K) {
	delete(s.all, k)
	s.dirty = true
}

// find returns one that holds n bytes from addr on, and the offset in it.
func (s *spans[K]) find(addr, n uint64) (k K, off uint64, ok bool) {
	if addr+n < addr {
		return k, 0, false
	}
	if s.dirty {
		s.sort()
	}
	i := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i].addr > addr })
	for i--; i >= 0 && s.sorted[i].end >= addr+n; i-- {
		if x := &s.sorted[i]; x.addr+x.n >= addr+n {
			return x.key, addr - x.addr, true
		}
	}
	return k, 0, false
}

func (s *spans[K]) sort() {
	s.sorted, s.dirty = s.sorted[:0], false
	for k, x := range s.all {
		s.sorted = append(s.sorted, indexed[K]{span: x, key: k})
	}
	slices.SortFunc(s.sorted, func(a, b indexed[K]) int { return cmp.Compare(a.addr, b.addr) })
	var end uint64
	for i := range s.sorted {
		end = max(end, s.sorted[i].addr+s.sorted[i].n)
		s.sorted[i].end = end
	}
}
