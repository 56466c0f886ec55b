package mr

import (
	"fmt"
	"sync"
)

// PD is a protection domain: queue pairs reach only regions of their own. All
// methods may be called from any goroutine.
type PD struct {
	t  *Table
	id uint64

	mu      sync.Mutex
	regions int  // guarded by mu
	users   int  // guarded by mu
	closed  bool // guarded by mu
}

// String names the domain in messages.
func (pd *PD) String() string { return fmt.Sprintf("pd %d", pd.id) }

// Table is the table the domain belongs to.
func (pd *PD) Table() *Table { return pd.t }

// Retain counts a user other than a region, such as a queue pair or a shared
// receive queue; Dealloc is refused until its Release. It fails with
// ErrPDClosed.
func (pd *PD) Retain() error { return pd.enter(&pd.users) }

// Release ends one Retain. It panics when there was none.
func (pd *PD) Release() { pd.leave(&pd.users) }

func (pd *PD) enter(n *int) error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return ErrPDClosed
	}
	*n++
	return nil
}

func (pd *PD) leave(n *int) {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if *n == 0 {
		panic("mr: PD released more often than retained")
	}
	*n--
}

// Dealloc closes the domain. It is refused with an error that unwraps to ErrBusy
// while regions (those waiting for lent spans included) or queue pairs live in
// it. Deallocating twice gives ErrPDClosed.
func (pd *PD) Dealloc() error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	switch {
	case pd.closed:
		return ErrPDClosed
	case pd.regions > 0 || pd.users > 0:
		return fmt.Errorf("mr: %d regions and %d queues live in %v, deregister and destroy them first: %w",
			pd.regions, pd.users, pd, ErrBusy)
	}
	pd.closed = true
	return nil
}
