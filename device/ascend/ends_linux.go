//go:build amd64 || arm64

package ascend

import (
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// waiting is a function that a stream's end of work will call.
type waiting struct {
	s     *stream
	f     func(error)
	id    uintptr // under which the runtime knows it; 0 where there are no callbacks
	event *event  // that is asked instead
}

// end is a waiting whose time has come.
type end struct {
	w   *waiting
	err error
}

// numbered are the waitings that the runtime was given, by number: C memory never
// holds a Go pointer, and there is one callback for all, since none is ever freed.
var numbered = struct {
	mu   sync.Mutex
	last uintptr
	open map[uintptr]*waiting
	once sync.Once
	fn   uintptr
}{open: make(map[uintptr]*waiting)}

// reached is called by the runtime, on a thread of its own, with the number of what
// a stream has come to. It must be short: the stream waits for it.
func reached(id uintptr) {
	numbered.mu.Lock()
	w := numbered.open[id]
	delete(numbered.open, id)
	numbered.mu.Unlock()
	if w != nil {
		w.s.reach(w)
	}
}

func callback() uintptr {
	numbered.once.Do(func() { numbered.fn = purego.NewCallback(reached) })
	return numbered.fn
}

func (w *waiting) number() {
	numbered.mu.Lock()
	defer numbered.mu.Unlock()
	numbered.last++
	w.id = numbered.last
	numbered.open[w.id] = w
}

func (w *waiting) forget() {
	numbered.mu.Lock()
	defer numbered.mu.Unlock()
	delete(numbered.open, w.id)
}

// Do queues an end.
func (s *stream) Do(f func(error)) error {
	w := &waiting{s: s, f: f}
	if !s.d.caps.Callbacks {
		return s.doByEvent(w)
	}
	fn := callback()
	w.number()
	if err := s.expect(w); err != nil {
		w.forget()
		return err
	}
	err := s.d.run(call{"aclrtLaunchHostFunc", "a callback", func() int32 { return s.d.lib.acl.LaunchHostFunc(s.h, fn, w.id) }})
	if err == nil {
		s.d.ends.watch()
		return nil
	}
	w.forget()
	return s.refused(w, err)
}

// refused takes back what could not be queued. If the stream has failed meanwhile
// it was told already, and the call has worked as far as its caller is concerned.
func (s *stream) refused(w *waiting, err error) error {
	if s.withdraw(w) {
		return err
	}
	return nil
}

// doByEvent records an event, for which the second goroutine asks.
func (s *stream) doByEvent(w *waiting) error {
	e, err := s.takeEvent()
	if err != nil {
		return err
	}
	w.event = e
	if err := s.Record(e); err != nil {
		s.giveEvent(e)
		return err
	}
	if err := s.expect(w); err != nil {
		s.giveEvent(e)
		return err
	}
	s.d.ends.watch()
	return nil
}

func (s *stream) takeEvent() (*event, error) {
	s.mu.Lock()
	if n := len(s.spare); n > 0 {
		e := s.spare[n-1]
		s.spare = s.spare[:n-1]
		s.mu.Unlock()
		return e, nil
	}
	s.mu.Unlock()
	return s.d.newEvent(false)
}

func (s *stream) giveEvent(e *event) {
	s.mu.Lock()
	alive := s.err == nil
	if alive {
		s.spare = append(s.spare, e)
	}
	s.mu.Unlock()
	if !alive {
		_ = e.Destroy() // what is left of a lost device is no matter
	}
}

// expect notes that w is about to be queued.
func (s *stream) expect(w *waiting) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.pending = append(s.pending, w)
	return nil
}

// withdraw takes w out of what is pending and reports whether it was there.
func (s *stream) withdraw(w *waiting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.pending {
		if p == w {
			s.pending = append(s.pending[:i], s.pending[i+1:]...)
			return true
		}
	}
	return false
}

// reach ends w, once. Where the runtime would not have come this far after a failure
// there is nothing to ask, and w is told here, without waking anybody in between.
func (s *stream) reach(w *waiting) {
	switch {
	case !s.withdraw(w):
	case s.stops && w.event == nil:
		w.f(nil)
	default:
		s.d.ends.add(end{w, nil})
	}
}

// ends is the goroutine that calls the functions, and asks what does not tell.
type ends struct {
	d    *Device
	wake chan struct{}
	quit chan struct{}
	over chan struct{}

	mu     sync.Mutex
	list   []end // guarded by mu
	asking bool  // there may be something to ask for; guarded by mu
}

func newEnds(d *Device) *ends {
	e := &ends{d: d, wake: make(chan struct{}, 1), quit: make(chan struct{}), over: make(chan struct{})}
	go e.run()
	return e
}

func (e *ends) kick() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// add hands an end over, from any thread.
func (e *ends) add(x end) {
	e.mu.Lock()
	e.list = append(e.list, x)
	e.mu.Unlock()
	e.kick()
}

// watch has streams looked after while something is pending.
func (e *ends) watch() {
	e.mu.Lock()
	idle := !e.asking
	e.asking = true
	e.mu.Unlock()
	if idle {
		e.kick()
	}
}

// Pauses between two questions: for failures only where callbacks tell of success.
const (
	askForFailure = 5 * time.Millisecond
	askForEnds    = 50 * time.Microsecond
)

func (e *ends) run() {
	defer close(e.over)
	pause := askForFailure
	if !e.d.caps.Callbacks {
		pause = askForEnds
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	asked := time.Now()
	for {
		for e.tell() {
			continue
		}
		if !e.pending() {
			timer.Stop()
		} else if left := pause - time.Since(asked); left > 0 {
			timer.Reset(left)
		} else {
			e.ask()
			asked = time.Now()
			continue
		}
		select {
		case <-e.wake:
		case <-timer.C:
		case <-e.quit:
			for e.tell() {
				continue
			}
			return
		}
	}
}

// tell calls the functions whose time has come.
func (e *ends) tell() bool {
	e.mu.Lock()
	list := e.list
	e.list = nil
	e.mu.Unlock()
	for _, x := range list {
		err := x.err
		if s := x.w.s; err == nil && !s.stops { // it may have gone on after a failure
			if err = s.query(); err != nil {
				s.fail(err)
			}
		}
		if x.w.id != 0 {
			x.w.forget()
		}
		if x.w.event != nil {
			x.w.s.giveEvent(x.w.event)
		}
		x.w.f(err)
	}
	return len(list) > 0
}

// streams are those with something pending.
func (e *ends) streams() []*stream {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	var list []*stream
	for s := range e.d.streams {
		s.mu.Lock()
		if len(s.pending) > 0 {
			list = append(list, s)
		}
		s.mu.Unlock()
	}
	return list
}

func (e *ends) pending() bool {
	e.mu.Lock()
	asking := e.asking
	e.asking = false
	e.mu.Unlock()
	if !asking {
		return false
	}
	left := len(e.streams()) > 0
	if left {
		e.mu.Lock()
		e.asking = true
		e.mu.Unlock()
	}
	return left
}

// ask finds out what is over, and what has failed.
func (e *ends) ask() {
	for _, s := range e.streams() {
		for s.reachEvents() {
			continue
		}
		if err := s.query(); err != nil {
			s.fail(err)
		}
	}
}

// reachEvents ends the first pending if its event is done.
func (s *stream) reachEvents() bool {
	s.mu.Lock()
	var w *waiting
	if len(s.pending) > 0 {
		w = s.pending[0]
	}
	s.mu.Unlock()
	if w == nil || w.event == nil {
		return false
	}
	done, err := w.event.Done()
	if err != nil || !done {
		return false // a failure is the stream's
	}
	s.reach(w)
	return true
}

func (e *ends) close() {
	close(e.quit)
	<-e.over
}

// distance is b-a in bytes.
func distance(a, b *byte) int {
	return int(uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(a)))
}
