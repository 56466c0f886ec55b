//go:build amd64 || arm64

package ascend

import (
	"fmt"
	"sync"
	"time"

	"github.com/gohixl/hixl/device"
)

// stream is an aclrtStream. Its error, once set, is what ended it.
type stream struct {
	d *Device
	h uintptr
	// stops is set where the runtime drops what is queued behind failed work; else
	// each end has to be asked for. Set once.
	stops bool

	mu      sync.Mutex
	err     error      // guarded by mu, as all below
	pending []*waiting // in the order of their queueing
	spare   []*event   // for ends where there are no callbacks
}

var (
	_ device.Stream    = (*stream)(nil)
	_ device.Submitter = (*stream)(nil)
)

// NewStream makes a stream.
func (d *Device) NewStream(priority int) (device.Stream, error) {
	if priority > d.caps.GreatestPriority || priority < d.caps.LeastPriority {
		return nil, &device.ArgumentError{
			Call: "NewStream", What: fmt.Sprintf("priority %d", priority),
			Allowed: fmt.Sprintf("%d to %d", d.caps.LeastPriority, d.caps.GreatestPriority),
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return nil, err
	}
	s, a := &stream{d: d}, &d.lib.acl
	create := call{"aclrtCreateStream", "a stream", func() int32 { return a.CreateStream(&s.h) }}
	if priority != firstPriority {
		p := uint32(d.highest - int32(priority))
		create = call{"aclrtCreateStreamWithConfig", fmt.Sprintf("a stream of priority %d", priority), func() int32 { return a.CreateStreamConfig(&s.h, p, 0) }}
	}
	if err := d.run(create); err != nil {
		return nil, err
	}
	if a.FailureMode != nil {
		s.stops = d.run(call{"aclrtSetStreamFailureMode", "", func() int32 { return a.FailureMode(s.h, stopOnFailure) }}) == nil
	}
	d.streams[s] = struct{}{}
	d.usage.Streams++
	return s, nil
}

// failure is what ended the stream, or nil.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// queue makes calls that queue work.
func (s *stream) queue(calls ...call) error {
	if err := s.failure(); err != nil {
		return err
	}
	return s.d.run(calls...)
}

// Copy queues copies: as one batch where that goes.
func (s *stream) Copy(list ...device.Copy) error {
	calls, err := s.copies(list)
	if err != nil {
		return err
	}
	return s.queue(calls...)
}

// copies checks copies and lists the calls that queue them.
func (s *stream) copies(list []device.Copy) ([]call, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	for i := range list {
		if err := device.CheckCopy(&list[i]); err != nil {
			return nil, err
		}
		if err := s.d.pinned(&list[i]); err != nil {
			return nil, err
		}
	}
	if b := s.d.newBatch(list); b != nil {
		return []call{{"aclrtMemcpyBatchAsync", fmt.Sprintf("%d copies, the first of %s", len(b.sizes), whatOf(&list[0])), func() int32 { return b.call(s.d, s.h) }}}, nil
	}
	calls := make([]call, 0, len(list))
	for i := range list {
		dst, src, n, kind := endsOf(&list[i])
		if n == 0 {
			continue
		}
		calls = append(calls, call{"aclrtMemcpyAsync", whatOf(&list[i]), func() int32 { return s.d.lib.acl.MemcpyAsync(dst, n, src, n, kind, s.h) }})
	}
	return calls, nil
}

// Submit queues copies and their end in one visit to the device's thread, and does
// not wait for it.
func (s *stream) Submit(list []device.Copy, f func(error)) {
	if !s.d.caps.Callbacks {
		if err := s.Copy(list...); err != nil {
			s.d.ends.add(end{&waiting{s: s, f: f}, err})
		} else if err := s.Do(f); err != nil {
			s.d.ends.add(end{&waiting{s: s, f: f}, err})
		}
		return
	}
	calls, err := s.copies(list)
	w := &waiting{s: s, f: f}
	w.number()
	if err == nil {
		err = s.expect(w)
	}
	if err != nil {
		s.d.ends.add(end{w, err})
		return
	}
	fn := callback()
	calls = append(calls, call{"aclrtLaunchHostFunc", "a callback", func() int32 { return s.d.lib.acl.LaunchHostFunc(s.h, fn, w.id) }})
	s.d.ends.watch()
	posted := s.d.thread.post(func() {
		err := s.d.present(calls)
		if err == nil {
			err = s.d.runHere(calls...)
		}
		if err != nil && s.withdraw(w) {
			s.d.ends.add(end{w, err})
		}
	})
	if !posted && s.withdraw(w) {
		s.d.ends.add(end{w, device.ErrClosed})
	}
}

// pinned refuses host memory that the driver does not know. The runtime may copy
// it at once instead, or worse, so it is not asked.
func (d *Device) pinned(c *device.Copy) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.inBlock(c.Dev, c.Bytes()); err != nil {
		return err
	}
	if len(c.Host) == 0 {
		return nil
	}
	if _, ok := d.buffers[&c.Host[0]]; ok {
		return nil
	}
	at := &c.Host[0]
	for _, k := range d.buffers {
		if off := distance(&k.b[0], at); off >= 0 && off+len(c.Host) <= len(k.b) {
			return nil
		}
	}
	return &device.ArgumentError{Call: "Stream.Copy", What: "host memory that is not pinned", Allowed: "memory of AllocHost"}
}

// WriteValue queues aclrtValueWrite.
func (s *stream) WriteValue(addr device.Addr, value uint64) error {
	if err := device.CheckWord(addr); err != nil {
		return err
	}
	return s.queue(call{"aclrtValueWrite", "a value", func() int32 { return s.d.lib.acl.ValueWrite(uintptr(addr), value, 0, s.h) }})
}

// conditions are the runtime's numbers.
var conditions = map[device.Condition]uint32{
	device.AtLeast: waitGEQ, device.Equal: waitEQ, device.AnyBit: waitAND, device.NotBoth: waitNOR,
}

// WaitValue queues aclrtValueWait.
func (s *stream) WaitValue(addr device.Addr, value uint64, c device.Condition) error {
	if err := device.CheckWord(addr); err != nil {
		return err
	}
	flag, ok := conditions[c]
	if !ok {
		return &device.ArgumentError{Call: "WaitValue", What: fmt.Sprintf("condition %d", c), Allowed: "AtLeast, Equal, AnyBit or NotBoth"}
	}
	return s.queue(call{"aclrtValueWait", "waiting for a value", func() int32 { return s.d.lib.acl.ValueWait(uintptr(addr), value, flag, s.h) }})
}

// Sync waits for an end behind all that is queued. The runtime's own way would
// hold the device's thread.
func (s *stream) Sync(timeout time.Duration) error {
	done := make(chan error, 1)
	if err := s.Do(func(err error) { done <- err }); err != nil {
		return err
	}
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("device %s: a stream still has work after %v: %w", s.d.name, timeout, device.ErrTimeout)
	}
}

// Destroy drops what is queued and ends the stream.
func (s *stream) Destroy() error {
	d := s.d
	d.mu.Lock()
	_, there := d.streams[s]
	delete(d.streams, s)
	if there {
		d.usage.Streams--
	}
	d.mu.Unlock()
	if !there {
		return nil
	}
	s.fail(device.ErrClosed)
	a := &d.lib.acl
	var errs []error
	if a.DestroyForce != nil {
		errs = append(errs, d.run(call{"aclrtDestroyStreamForce", "ending a stream", func() int32 { return a.DestroyForce(s.h) }}))
	} else {
		if a.StreamAbort != nil {
			_ = d.run(call{"aclrtStreamAbort", "", func() int32 { return a.StreamAbort(s.h) }})
		}
		errs = append(errs, d.run(call{"aclrtDestroyStream", "ending a stream", func() int32 { return a.DestroyStream(s.h) }}))
	}
	s.mu.Lock()
	spare := s.spare
	s.spare = nil
	s.mu.Unlock()
	for _, e := range spare {
		errs = append(errs, e.Destroy())
	}
	return lostIsFine(errs)
}

// fail ends the stream with err, unless it has ended, and tells all who wait.
func (s *stream) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	left := s.pending
	s.pending = nil
	err = s.err
	s.mu.Unlock()
	for _, w := range left {
		s.d.ends.add(end{w, err})
	}
}

// query asks the runtime whether work of the stream has failed.
func (s *stream) query() error {
	if s.d.lib.acl.StreamQuery == nil {
		return nil
	}
	var status int32
	return s.d.run(call{"aclrtStreamQuery", "work of a stream", func() int32 { return s.d.lib.acl.StreamQuery(s.h, &status) }})
}
