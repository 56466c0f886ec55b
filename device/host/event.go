package host

import (
	"sync"

	"github.com/gohixl/hixl/device"
)

// event counts its records and how many of them were reached.
type event struct {
	d *Driver

	mu    sync.Mutex
	last  uint64                   // number of the newest record; guarded by mu
	done  uint64                   // newest that was reached; guarded by mu
	waits map[uint64]chan struct{} // closed when reached; guarded by mu
	ended bool                     // guarded by mu
}

var _ device.Event = (*event)(nil)

// NewEvent makes an event.
func (d *Driver) NewEvent() (device.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, device.ErrClosed
	}
	e := &event{d: d, waits: make(map[uint64]chan struct{})}
	d.events[e] = struct{}{}
	d.usage.Events++
	return e, nil
}

// event checks that e is alive and of this driver.
func (d *Driver) event(e device.Event) (*event, error) {
	ev, ok := e.(*event)
	if !ok || ev.d != d {
		return nil, &device.ArgumentError{Call: "Record or WaitEvent", What: "another driver's event", Allowed: "one of this driver"}
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if ev.ended {
		return nil, device.ErrClosed
	}
	return ev, nil
}

func (e *event) recorded() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	return e.last
}

func (e *event) complete(n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = max(e.done, n)
	for i, c := range e.waits {
		if i <= e.done {
			close(c)
			delete(e.waits, i)
		}
	}
}

// reached is closed when the newest record is.
func (e *event) reached() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.waits[e.last]
	if c == nil {
		c = make(chan struct{})
		if e.done >= e.last || e.ended {
			close(c)
		} else {
			e.waits[e.last] = c
		}
	}
	return c
}

// Done reports whether the newest record was reached.
func (e *event) Done() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return false, device.ErrClosed
	}
	return e.done >= e.last, nil
}

// Destroy ends the event and lets who waits for it go on.
func (e *event) Destroy() error {
	e.mu.Lock()
	ended := e.ended
	e.ended = true
	for i, c := range e.waits {
		close(c)
		delete(e.waits, i)
	}
	e.mu.Unlock()
	if ended {
		return nil
	}
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if _, ok := e.d.events[e]; ok {
		delete(e.d.events, e)
		e.d.usage.Events--
	}
	return nil
}
