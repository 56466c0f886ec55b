//go:build amd64 || arm64

package ascend

import (
	"runtime"
	"strings"
	"sync"

	"github.com/gohixl/hixl/device"
)

// thread is a goroutine locked to an OS thread, on which the runtime finds its
// context. Calls run there one after the other.
type thread struct {
	jobs chan func()
	end  chan struct{} // closed to end it
	over chan struct{} // closed when it has ended

	mu     sync.RWMutex
	closed bool // guarded by mu
}

func newThread() *thread {
	t := &thread{jobs: make(chan func(), 64), end: make(chan struct{}), over: make(chan struct{})}
	go t.run()
	return t
}

// run never unlocks: the OS thread ends with the goroutine, and its context with
// it.
func (t *thread) run() {
	defer close(t.over)
	runtime.LockOSThread()
	for {
		select {
		case f := <-t.jobs:
			f()
		case <-t.end:
			for { // what was posted before
				select {
				case f := <-t.jobs:
					f()
				default:
					return
				}
			}
		}
	}
}

// do runs f on the thread and waits for it. It reports false after close.
func (t *thread) do(f func()) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return false
	}
	done := make(chan struct{})
	t.jobs <- func() {
		f()
		close(done)
	}
	<-done
	return true
}

// post runs f on the thread and does not wait for it. It reports false after close.
func (t *thread) post(f func()) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return false
	}
	t.jobs <- f
	return true
}

// close ends the thread when what was asked for is over.
func (t *thread) close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if !closed {
		close(t.end)
	}
	<-t.over
}

// call is one use of a C function.
type call struct {
	name string // of the function
	what string // what it is for, for errors
	do   func() int32
}

// run makes calls on the device's thread, one after the other, until one fails.
func (d *Device) run(calls ...call) error {
	err := d.present(calls)
	if err != nil {
		return err
	}
	if !d.thread.do(func() { err = d.runHere(calls...) }) {
		return device.ErrClosed
	}
	return err
}

// present reports a call that the libraries lack.
func (d *Device) present(calls []call) error {
	for i := range calls {
		if !d.lib.have[calls[i].name] {
			return d.lib.missing(calls[i].name)
		}
	}
	return nil
}

// runHere makes calls on this thread, which must be the device's.
func (d *Device) runHere(calls ...call) error {
	for i := range calls {
		c := &calls[i]
		if n := c.do(); n != 0 {
			codes, message := aclCodes, ""
			if strings.HasPrefix(c.name, "hal") {
				codes = halCodes
			} else {
				message = d.lib.message()
			}
			return describe(codes, d.name, c.name, c.what, int(n), message)
		}
	}
	return nil
}

// missing says that the libraries lack a function.
func (l *library) missing(name string) error {
	e := &device.NotAvailableError{Symbol: name, Library: l.path, Version: l.version}
	if strings.HasPrefix(name, "hal") {
		if e.Library = l.halPath; e.Library == "" {
			e.Library = "libascend_hal.so, which is not loaded (" + l.halWhy + ")"
		}
	}
	return e
}
