package hixl

import (
	"errors"
	"slices"
	"sync"
	"unsafe"
)

// maxCached bounds the registrations that the cache keeps for later.
const maxCached = 1024

// regionCache remembers registrations of memory of the application's.
type regionCache struct {
	mu    sync.Mutex
	all   []*cached // guarded by mu; by start
	clock uint64    // guarded by mu; counts uses
}

type cached struct {
	start, end uintptr
	r          *Region
	users      int
	used       uint64
}

// Cached returns registered memory for b: of a registration of earlier that covers
// it and grants access, else of a new one, which is kept for later. release says
// that no transfer uses it any more; the registration stays until others need its
// place. Memory of the Go heap stays alive as long as it is kept. Any other must
// be told by [Context.Invalidate] before it is unmapped or becomes something else.
func (c *Context) Cached(b []byte, access Access) (s Slice, release func(), err error) {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	end := start + uintptr(len(b))
	k := &c.cache
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clock++
	x := k.find(start, end, access)
	if x != nil {
		c.counts.regionHits.Add(1)
	} else {
		c.counts.regionMisses.Add(1)
		r, err := c.Register(b, access)
		if err != nil {
			return s, nil, err
		}
		x = &cached{start: start, end: end, r: r}
		i, _ := slices.BinarySearchFunc(k.all, start, func(e *cached, at uintptr) int { return compareAddr(e.start, at) })
		k.all = slices.Insert(k.all, i, x)
		k.shrink()
	}
	x.users++
	x.used = k.clock
	var once sync.Once
	release = func() { once.Do(func() { k.release(x) }) }
	return x.r.Slice(uint64(start-x.start), uint64(len(b))), release, nil
}

func compareAddr(a, b uintptr) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// find returns a registration that covers a range. The nearest ones before it are
// looked at: one that covers it from far below may be missed, which costs a
// registration. k.mu is held.
func (k *regionCache) find(start, end uintptr, access Access) *cached {
	i, _ := slices.BinarySearchFunc(k.all, start+1, func(e *cached, at uintptr) int { return compareAddr(e.start, at) })
	const near = 8
	for j := i - 1; j >= 0 && j >= i-near; j-- {
		if x := k.all[j]; x.end >= end && x.r.Access()&access == access && x.r.Valid() {
			return x
		}
	}
	return nil
}

func (k *regionCache) release(x *cached) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x.users--
}

// shrink drops the longest unused registrations beyond the limit. k.mu is held.
func (k *regionCache) shrink() {
	for len(k.all) > maxCached {
		oldest := -1
		for i, x := range k.all {
			if x.users == 0 && (oldest < 0 || x.used < k.all[oldest].used) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		_ = k.all[oldest].r.Deregister(overContext)
		k.all = slices.Delete(k.all, oldest, oldest+1)
	}
}

// Invalidate ends all cached registrations that touch b: their keys are refused from
// now on, to peers too, and it returns when nothing of them is being moved, or with
// the error of [Region.Deregister]. Call it before memory that is not the Go heap's
// is unmapped or becomes something else.
func (c *Context) Invalidate(b []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	end := start + uintptr(len(b))
	k := &c.cache
	k.mu.Lock()
	var gone []*cached
	k.all = slices.DeleteFunc(k.all, func(x *cached) bool {
		touches := x.start < end && start < x.end
		if touches {
			gone = append(gone, x)
		}
		return touches
	})
	k.mu.Unlock()
	var errs []error
	for _, x := range gone {
		errs = append(errs, x.r.Deregister(background))
	}
	return errors.Join(errs...)
}
