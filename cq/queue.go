package cq

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// MaxCapacity is the largest capacity of a Queue, in completions.
const MaxCapacity = 1 << 20

// Errors of a Queue itself, to test for with errors.Is.
var (
	// ErrClosed: the queue was closed and is drained.
	ErrClosed = errors.New("cq: completion queue is closed")
	// ErrOverrun: completions were lost because the queue was full.
	ErrOverrun = errors.New("cq: completion queue overrun")
	// ErrCapacity: a capacity that a queue cannot have.
	ErrCapacity = errors.New("cq: capacity out of range")
	// ErrNoRoom: Wait was given an empty slice.
	ErrNoRoom = errors.New("cq: no room for completions, give a slice of 1 or more")
)

// OverrunError tells how many completions were lost. It unwraps to ErrOverrun.
type OverrunError struct {
	Capacity int
	Lost     uint64
}

// Error says what happened and what to do.
func (e *OverrunError) Error() string {
	return fmt.Sprintf("cq: overrun: %d completions were lost because %d were waiting; their queue pairs are in error: "+
		"make a queue that holds all signaled sends and all receives that may be outstanding, poll it more often, and reconnect",
		e.Lost, e.Capacity)
}

// Unwrap returns ErrOverrun.
func (e *OverrunError) Unwrap() error { return ErrOverrun }

// Queue is a completion queue of fixed capacity. It is a Sink. All methods may
// be called from any goroutine.
type Queue struct {
	driver   atomic.Pointer[driven]
	events   chan struct{} // capacity 1; closed by Close
	capacity int           // set once

	mu     sync.Mutex
	ring   []Completion // guarded by mu; length a power of two, grows up to capacity
	head   uint32       // guarded by mu; counts up
	n      int          // guarded by mu
	lost   uint64       // guarded by mu
	closed bool         // guarded by mu
	arm    armState     // guarded by mu
	wait   waitList     // guarded by mu
}

var _ Sink = (*Queue)(nil)

// New makes a queue that holds up to capacity completions, 1 to MaxCapacity. It
// must hold everything that can complete before it is polled: all signaled
// send requests and all receive requests of its queue pairs. Memory is taken as
// it is needed.
func New(capacity int) (*Queue, error) {
	if capacity < 1 || capacity > MaxCapacity {
		return nil, fmt.Errorf("cq: capacity is %d, give 1 to %d: %w", capacity, MaxCapacity, ErrCapacity)
	}
	return &Queue{capacity: capacity, events: make(chan struct{}, 1)}, nil
}

// Cap is the number of completions that can wait.
func (q *Queue) Cap() int { return q.capacity }

// Len is the number of completions that wait now.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// Complete appends a copy of c and wakes one waiter. False: the queue is full or
// closed and the completion is lost; a full queue stays overrun from then on.
func (q *Queue) Complete(c *Completion) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.n == q.capacity || q.lost > 0 { // nothing after a gap
		q.lost++
		q.event(true)
		q.wait.wakeAll()
		return false
	}
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+uint32(q.n))&uint32(len(q.ring)-1)] = *c
	q.n++
	q.event(c.Flags.Has(Solicited) || c.Status != StatusSuccess)
	q.wait.wakeOne()
	return true
}

// grow doubles the ring. The caller holds mu.
func (q *Queue) grow() {
	next := make([]Completion, max(minRing, 2*len(q.ring)))
	for i := range q.n {
		next[i] = q.ring[(q.head+uint32(i))&uint32(len(q.ring)-1)]
	}
	q.ring, q.head = next, 0
}

// minRing is the first ring's length, a power of two.
const minRing = 16

// Overrun reports whether completions were lost.
func (q *Queue) Overrun() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost > 0
}

// Poll takes up to len(out) completions, oldest first, and never blocks. When
// none wait it runs the driver and looks again. Once a queue that lost
// completions is drained, it returns an *OverrunError every time; once a closed
// one is, ErrClosed.
func (q *Queue) Poll(out []Completion) (int, error) {
	n, err := q.take(out)
	if n > 0 || err != nil || len(out) == 0 || !q.makeProgress() {
		return n, err
	}
	return q.take(out)
}

// take is Poll without progress.
func (q *Queue) take(out []Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takeLocked(out)
}

func (q *Queue) takeLocked(out []Completion) (int, error) {
	n := min(q.n, len(out))
	for i := range n {
		out[i] = q.ring[(q.head+uint32(i))&uint32(len(q.ring)-1)]
	}
	q.head += uint32(n)
	q.n -= n
	if n > 0 || q.n > 0 { // nothing taken of something: no room in out
		return n, nil
	}
	return 0, q.endLocked()
}

// endLocked is why nothing more will come, or nil.
func (q *Queue) endLocked() error {
	switch {
	case q.lost > 0:
		return &OverrunError{Capacity: q.capacity, Lost: q.lost}
	case q.closed:
		return ErrClosed
	}
	return nil
}

// Driver is what fills a queue, for whoever polls an empty queue or waits on it to
// run. Its methods are called with no lock held, from several goroutines at once,
// and must not call Poll or Wait of the same queue.
type Driver interface {
	// Progress does what there is to do, without blocking, and reports whether
	// there was anything, in which case it is called again before a waiter parks.
	Progress() (worked bool)
	// Patience is called by a waiter when there are no completions and no
	// progress, before it parks: with 0, 1, 2 and so on, until it makes progress
	// again. False lets it park. It may take the time that is worth a wake-up,
	// yielding the processor meanwhile.
	Patience(try int) (again bool)
}

// driven holds a Driver, which atomics cannot.
type driven struct{ Driver }

// SetDriver sets what fills the queue; nil is nothing that could be run.
func (q *Queue) SetDriver(d Driver) {
	if d == nil {
		q.driver.Store(nil)
		return
	}
	q.driver.Store(&driven{d})
}

// Driver returns what SetDriver set, or nil.
func (q *Queue) Driver() Driver {
	if d := q.driver.Load(); d != nil {
		return d.Driver
	}
	return nil
}

func (q *Queue) patient(try int) bool {
	d := q.driver.Load()
	return d != nil && d.Patience(try)
}

func (q *Queue) makeProgress() bool {
	d := q.driver.Load()
	return d != nil && d.Progress()
}

// Close ends the queue: completions that wait can still be taken, new ones are
// refused, everyone who waits is woken, and the channel of Events is closed.
// Closing twice is fine.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	close(q.events)
	q.wait.wakeAll()
}
