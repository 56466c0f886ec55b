package nic

import (
	"errors"
	"syscall"
	"time"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
)

// DeviceError reports a NIC whose transport failed for good: it receives nothing
// any more. It unwraps to [ErrDevice] and to what the transport said.
type DeviceError struct{ Err error }

func (e *DeviceError) Error() string {
	return "nic: receiving has ended: " + e.Err.Error() + ": close the NIC and open another"
}

// Unwrap returns [ErrDevice] and the transport's error.
func (e *DeviceError) Unwrap() []error { return []error{ErrDevice, e.Err} }

// passing reports whether a transport's error is about this moment alone: the
// system had no memory for the call.
func passing(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOBUFS)
}

// passingPause is how long the receive goroutine waits before it tries again.
const passingPause = time.Millisecond

// pause lets an error pass, or the NIC close.
func (n *NIC) pause(err error) {
	n.log.Debug("receiving pauses", "error", err)
	timer := time.NewTimer(passingPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.quit:
	}
}

// stopped notes that the transport ended. When nobody closed it, nothing is
// heard of any peer again: every queue pair fails, so that nobody waits for one.
// No lock is held.
func (n *NIC) stopped(err error) {
	if n.closing.Load() || !n.broken.CompareAndSwap(nil, &DeviceError{err}) {
		return
	}
	n.log.Error("receiving has ended: all queue pairs fail", "error", err)
	n.events.DeviceFatal(err)
	now := n.clock()
	n.qps.all(func(q *Queue) { n.fail(now, q) })
	n.Wake()
}

// Err returns nil as long as the transport works, then a *[DeviceError].
func (n *NIC) Err() error {
	if e := n.broken.Load(); e != nil {
		return e
	}
	return nil
}

// fail ends a queue pair of a broken device by itself, as those who watch it want
// to know, and takes along one that is not connected yet.
func (n *NIC) fail(now mono.Time, q *Queue) {
	q.Lock()
	q.Fail(cq.StatusFatal)
	q.Unlock()
	n.flush(now, q)
	if q.State() != qp.Err {
		n.shut(now, q)
	}
}
