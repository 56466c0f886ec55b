//go:build amd64 || arm64

package ascend

import (
	"sync"

	"github.com/gohixl/hixl/device"
)

// event is an aclrtEvent.
type event struct {
	d       *Device
	h       uintptr
	counted bool // in the device's usage

	mu       sync.Mutex
	recorded bool // guarded by mu
	ended    bool // guarded by mu
}

var _ device.Event = (*event)(nil)

// NewEvent makes an event.
func (d *Device) NewEvent() (device.Event, error) {
	e, err := d.newEvent(true)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// newEvent prefers events that can be recorded again without a reset.
func (d *Device) newEvent(counted bool) (*event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return nil, err
	}
	e, a := &event{d: d, counted: counted}, &d.lib.acl
	c := call{"aclrtCreateEvent", "an event", func() int32 { return a.CreateEvent(&e.h) }}
	switch {
	case a.CreateEventEx != nil:
		c = call{"aclrtCreateEventExWithFlag", "an event", func() int32 { return a.CreateEventEx(&e.h, eventSync) }}
	case a.CreateEventFlag != nil:
		c = call{"aclrtCreateEventWithFlag", "an event", func() int32 { return a.CreateEventFlag(&e.h, eventSync) }}
	}
	if err := d.run(c); err != nil {
		return nil, err
	}
	d.events[e] = struct{}{}
	if counted {
		d.usage.Events++
	}
	return e, nil
}

// event checks that e is alive and of this device.
func (d *Device) event(e device.Event) (*event, error) {
	ev, ok := e.(*event)
	if !ok || ev.d != d {
		return nil, &device.ArgumentError{Call: "Record or WaitEvent", What: "another driver's event", Allowed: "one of this device"}
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if ev.ended {
		return nil, device.ErrClosed
	}
	return ev, nil
}

// Record queues aclrtRecordEvent.
func (s *stream) Record(e device.Event) error {
	ev, err := s.d.event(e)
	if err != nil {
		return err
	}
	err = s.queue(call{"aclrtRecordEvent", "an event", func() int32 { return s.d.lib.acl.RecordEvent(ev.h, s.h) }})
	if err == nil {
		ev.mu.Lock()
		ev.recorded = true
		ev.mu.Unlock()
	}
	return err
}

// WaitEvent queues aclrtStreamWaitEvent. The runtime would wait for an event that
// was never recorded until it is.
func (s *stream) WaitEvent(e device.Event) error {
	ev, err := s.d.event(e)
	if err != nil {
		return err
	}
	ev.mu.Lock()
	recorded := ev.recorded
	ev.mu.Unlock()
	if !recorded {
		return s.failure()
	}
	return s.queue(call{"aclrtStreamWaitEvent", "waiting for an event", func() int32 { return s.d.lib.acl.StreamWaitEvent(s.h, ev.h) }})
}

// Done asks aclrtQueryEventStatus.
func (e *event) Done() (bool, error) {
	e.mu.Lock()
	recorded, ended := e.recorded, e.ended
	e.mu.Unlock()
	switch {
	case ended:
		return false, device.ErrClosed
	case !recorded:
		return true, nil
	}
	var status int32
	err := e.d.run(call{"aclrtQueryEventStatus", "an event", func() int32 { return e.d.lib.acl.EventStatus(e.h, &status) }})
	return err == nil && status == eventComplete, err
}

// Destroy ends the event.
func (e *event) Destroy() error {
	e.mu.Lock()
	ended := e.ended
	e.ended = true
	e.mu.Unlock()
	if ended {
		return nil
	}
	d := e.d
	d.mu.Lock()
	delete(d.events, e)
	if e.counted {
		d.usage.Events--
	}
	d.mu.Unlock()
	return lostIsFine([]error{d.run(call{"aclrtDestroyEvent", "ending an event", func() int32 { return d.lib.acl.DestroyEvent(e.h) }})})
}
