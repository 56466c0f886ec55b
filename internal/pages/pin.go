package pages

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// PinError is memory that could not be kept from being paged out.
type PinError struct {
	Len int // bytes
	// Limit is RLIMIT_MEMLOCK in bytes, if that is what forbids it.
	Limit   uint64
	Limited bool
	Err     error
}

func (e *PinError) Error() string {
	if e.Limited {
		return fmt.Sprintf("pinning %d bytes: %v: RLIMIT_MEMLOCK allows this process %d bytes in all; raise it (ulimit -l, LimitMEMLOCK= of systemd) or give CAP_IPC_LOCK", e.Len, e.Err, e.Limit)
	}
	return fmt.Sprintf("pinning %d bytes: %v", e.Len, e.Err)
}

// Unwrap returns the system's error.
func (e *PinError) Unwrap() error { return e.Err }

// pinned holds the ranges of pages that are pinned: the system does not count how often
// a page is, so ranges that share pages are kept apart here.
var pinned struct {
	sync.Mutex
	ranges []pageRange // guarded by it
}

type pageRange struct{ from, to uintptr }

// Pin keeps b, of at least one byte, in memory until unpin is called, once. The error
// is a *PinError.
func Pin(b []byte) (unpin func(), err error) {
	pinned.Lock()
	defer pinned.Unlock()
	if err := lock(b); err != nil {
		return nil, err
	}
	start := uintptr(unsafe.Pointer(&b[0]))
	mask := uintptr(pageSize() - 1)
	r := pageRange{start &^ mask, (start + uintptr(len(b)) + mask) &^ mask}
	pinned.ranges = append(pinned.ranges, r)
	return func() { release(b, r) }, nil
}

// release unpins those pages of r, b's, that no other range has.
func release(b []byte, r pageRange) {
	pinned.Lock()
	defer pinned.Unlock()
	if i := slices.Index(pinned.ranges, r); i >= 0 {
		pinned.ranges = slices.Delete(pinned.ranges, i, i+1)
	}
	for _, free := range without(r, pinned.ranges) {
		unlock(free)
	}
	runtime.KeepAlive(b)
}

// without returns what of r lies in none of others.
func without(r pageRange, others []pageRange) (left []pageRange) {
	left = []pageRange{r}
	for _, o := range others {
		var next []pageRange
		for _, l := range left {
			if l.from < min(o.from, l.to) {
				next = append(next, pageRange{l.from, min(o.from, l.to)})
			}
			if max(o.to, l.from) < l.to {
				next = append(next, pageRange{max(o.to, l.from), l.to})
			}
		}
		left = next
	}
	return left
}
