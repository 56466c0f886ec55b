package host

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gohixl/hixl/device"
)

// stream is a goroutine that does what is queued, in order.
type stream struct {
	d    *Driver
	dead chan struct{} // closed by Destroy
	over chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	more   sync.Cond
	queue  []func() error // guarded by mu
	ending bool           // guarded by mu
	err    error          // what ended the stream; guarded by mu
}

var _ device.Stream = (*stream)(nil)

// NewStream makes a stream; there are no priorities but 0.
func (d *Driver) NewStream(priority int) (device.Stream, error) {
	if priority != 0 {
		return nil, &device.ArgumentError{Call: "NewStream", What: "a priority", Allowed: "0"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, device.ErrClosed
	}
	s := &stream{d: d, dead: make(chan struct{}), over: make(chan struct{})}
	s.more.L = &s.mu
	d.streams[s] = struct{}{}
	d.usage.Streams++
	go s.run()
	return s, nil
}

// run does the work until Destroy. After a failure it only tells who waits.
func (s *stream) run() {
	defer close(s.over)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ending {
			s.more.Wait()
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		f := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		if err := f(); err != nil {
			s.mu.Lock()
			if s.err == nil {
				s.err = err
			}
			s.mu.Unlock()
		}
	}
}

// failure is what ended the stream, or nil.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// add queues f, which is called even when the stream has ended meanwhile.
func (s *stream) add(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.queue = append(s.queue, f)
	s.more.Signal()
	return nil
}

// work queues f, which is skipped when the stream has ended meanwhile.
func (s *stream) work(f func() error) error {
	return s.add(func() error {
		if s.failure() != nil {
			return nil
		}
		return f()
	})
}

// Copy queues copies.
func (s *stream) Copy(list ...device.Copy) error {
	s.d.mu.Lock()
	for i := range list {
		if err := s.d.check(&list[i]); err != nil {
			s.d.mu.Unlock()
			return err
		}
	}
	s.d.mu.Unlock()
	own := append([]device.Copy(nil), list...)
	return s.work(func() error {
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		for i := range own {
			if err := s.d.move(&own[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Record marks this place.
func (s *stream) Record(e device.Event) error {
	ev, err := s.d.event(e)
	if err != nil {
		return err
	}
	n := ev.recorded()
	return s.add(func() error {
		if s.failure() == nil {
			ev.complete(n)
		}
		return nil
	})
}

// WaitEvent waits in the stream.
func (s *stream) WaitEvent(e device.Event) error {
	ev, err := s.d.event(e)
	if err != nil {
		return err
	}
	reached := ev.reached()
	return s.work(func() error {
		select {
		case <-reached:
		case <-s.dead:
		}
		return nil
	})
}

// WriteValue stores a word.
func (s *stream) WriteValue(addr device.Addr, value uint64) error {
	word, err := s.word(addr)
	if err != nil {
		return err
	}
	return s.work(func() error {
		atomic.StoreUint64(word, value)
		return nil
	})
}

// word is the word at addr.
func (s *stream) word(addr device.Addr) (*uint64, error) {
	if err := device.CheckWord(addr); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	b, err := s.d.bytes(addr, device.WordSize)
	if err != nil {
		return nil, err
	}
	return (*uint64)(unsafe.Pointer(&b[0])), nil
}

// Pauses between two looks at a word.
const (
	minPause = 20 * time.Microsecond
	maxPause = time.Millisecond
)

// WaitValue looks at the word until it meets the condition.
func (s *stream) WaitValue(addr device.Addr, value uint64, c device.Condition) error {
	word, err := s.word(addr)
	if err != nil {
		return err
	}
	return s.work(func() error {
		for pause := minPause; !c.Holds(atomic.LoadUint64(word), value); pause = min(2*pause, maxPause) {
			select {
			case <-s.dead:
				return nil
			case <-time.After(pause):
			}
		}
		return nil
	})
}

// Do calls f in its turn.
func (s *stream) Do(f func(error)) error {
	return s.add(func() error {
		f(s.failure())
		return nil
	})
}

// Sync waits for the turn of what is queued next.
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
		return device.ErrTimeout
	}
}

// Destroy drops what is queued and waits for the goroutine.
func (s *stream) Destroy() error {
	s.mu.Lock()
	if s.ending {
		s.mu.Unlock()
		<-s.over
		return nil
	}
	s.ending = true
	if s.err == nil {
		s.err = device.ErrClosed
	}
	s.more.Signal()
	s.mu.Unlock()
	close(s.dead)
	<-s.over
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	delete(s.d.streams, s)
	s.d.usage.Streams--
	return nil
}
