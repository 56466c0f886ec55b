package devicetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gohixl/hixl/device"
)

func addrOf(b []byte) device.Addr {
	return device.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// checkStreamOrder queues random copies on one stream and compares with a model
// that does each at once.
func checkStreamOrder(d device.Driver) error {
	const size = 1 << 12
	return with(d, size, 1, func(k *kit, b device.Block, host []byte, s []device.Stream) error {
		reads, err := k.buffer(size)
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(1, 2))
		copy(host, pattern(3, size))
		model, want := make([]byte, size), make([]byte, size)
		for at := 0; at+64 <= size; at += 64 {
			off, n := rng.IntN(200), 1+rng.IntN(64)
			if err := s[0].Copy(in(b, off, host[at:at+n])); err != nil {
				return err
			}
			copy(model[off:], host[at:at+n])
			off = rng.IntN(200)
			if err := s[0].Copy(out(b, off, reads[at:at+64])); err != nil {
				return err
			}
			copy(want[at:], model[off:off+64])
		}
		if err := s[0].Sync(patience); err != nil {
			return err
		}
		for i := range want {
			if reads[i] != want[i] {
				return fmt.Errorf("byte %d that was copied out is %#x, want %#x", i, reads[i], want[i])
			}
		}
		return holds(d, b, 0, model)
	})
}

// checkStreamVisibility: when a callback says so, the bytes are there.
func checkStreamVisibility(d device.Driver) error {
	const size = 1 << 20
	return with(d, size, 1, func(k *kit, b device.Block, host []byte, s []device.Stream) error {
		for round := range 4 {
			copy(host, pattern(byte(round), size))
			if err := s[0].Copy(in(b, 0, host)); err != nil {
				return err
			}
			if err := within(s[0]); err != nil {
				return err
			}
			if err := holds(d, b, 0, pattern(byte(round), size)); err != nil {
				return fmt.Errorf("after the callback: %w", err)
			}
		}
		return nil
	})
}

// within waits for the stream by Do.
func within(s device.Stream) error {
	done := make(chan error, 1)
	if err := s.Do(func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.New("a callback does not come")
	}
}

func checkStreamRefusals(d device.Driver) error {
	return with(d, 4096, 1, func(_ *kit, b device.Block, host []byte, s []device.Stream) error {
		_, priority := d.NewStream(d.Caps().GreatestPriority + 1000)
		err := errors.Join(
			wants("an unknown priority", priority, device.ErrArgument),
			wants("a copy beyond the end", s[0].Copy(in(b, 4090, host[:8])), device.ErrRange, device.ErrArgument),
			wants("a copy without direction", s[0].Copy(device.Copy{Dev: b.Addr, Host: host}), device.ErrArgument),
			wants("an event of nobody", s[0].Record(nil), device.ErrArgument),
			wants("waiting for an event of nobody", s[0].WaitEvent(nil), device.ErrArgument),
		)
		if d.Caps().Pinned {
			err = errors.Join(err, wants("an asynchronous copy from unpinned memory", s[0].Copy(in(b, 0, make([]byte, 8))), device.ErrArgument))
		}
		if d.Caps().Values {
			err = errors.Join(err,
				wants("a misaligned value", s[0].WriteValue(b.Addr+4, 1), device.ErrAlign, device.ErrArgument),
				wants("waiting for a misaligned value", s[0].WaitValue(b.Addr+1, 1, device.Equal), device.ErrAlign, device.ErrArgument))
		}
		return errors.Join(err, s[0].Sync(patience), holds(d, b, 0, make([]byte, 4096)))
	})
}

// checkEvents: what waits for an event sees what was done before it.
func checkEvents(d device.Driver) error {
	const size = 4 << 20
	return with(d, size, 3, func(k *kit, b device.Block, host []byte, s []device.Stream) error {
		e, err := d.NewEvent()
		if err != nil {
			return err
		}
		k.release = append(k.release, e.Destroy)
		got, err := k.buffer(size)
		if err != nil {
			return err
		}
		if done, err := e.Done(); !done || err != nil {
			return fmt.Errorf("an event that was never recorded: done %v, %w", done, err)
		}
		for round := range 3 {
			copy(host, pattern(byte(40+round), size))
			if err := crossing(d, b, host, got, s, e); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return errors.Join(e.Destroy(), wants("recording a destroyed event", s[0].Record(e), device.ErrClosed))
	})
}

// crossing copies in on one stream and out on another that waits for it.
func crossing(d device.Driver, b device.Block, host, got []byte, s []device.Stream, e device.Event) error {
	flag := device.Block{Addr: b.Addr, Size: 8}
	cross := func() error {
		var passed atomic.Bool
		if err := errors.Join(
			s[0].Copy(in(b, 8, host[8:])), s[0].Record(e),
			s[1].WaitEvent(e), s[1].Do(func(error) { passed.Store(true) }), s[1].Copy(out(b, 8, got[8:])),
		); err != nil || !d.Caps().Values {
			return err
		}
		if err := errors.Join(s[2].Copy(out(b, 0, got[:8])), s[2].Sync(patience)); err != nil {
			return err
		}
		if done, err := e.Done(); passed.Load() || done || err != nil {
			return fmt.Errorf("the waiting stream came first: passed %v, event done %v, %w", passed.Load(), done, err)
		}
		return nil
	}
	var err error
	if d.Caps().Values { // hold the first one up
		err = errors.Join(d.Copy(in(b, 0, make([]byte, 8))), blocked(d, flag, s, cross))
	} else {
		err = cross()
	}
	if err := errors.Join(err, s[1].Sync(patience)); err != nil {
		return err
	}
	if done, err := e.Done(); !done || err != nil {
		return fmt.Errorf("the event that another stream has passed: done %v, %w", done, err)
	}
	for i := 8; i < len(got); i++ {
		if got[i] != host[i] {
			return fmt.Errorf("the waiting stream came first: byte %d", i)
		}
	}
	return nil
}

// checkCallbacks: each once, in order, none on the goroutine that asks.
func checkCallbacks(d device.Driver) error {
	return with(d, 1<<16, 1, func(_ *kit, b device.Block, host []byte, s []device.Stream) error {
		const n = 200
		var calls atomic.Int64
		order := make(chan int, 2*n)
		for i := range n {
			err := errors.Join(s[0].Copy(in(b, 0, host[:1000])), s[0].Do(func(err error) {
				calls.Add(1)
				if err == nil {
					order <- i
				}
			}))
			if err != nil {
				return err
			}
		}
		if err := s[0].Sync(patience); err != nil {
			return err
		}
		for i := range n {
			select {
			case got := <-order:
				if got != i {
					return fmt.Errorf("callback %d comes at place %d", got, i)
				}
			default:
				return fmt.Errorf("callback %d has not come", i)
			}
		}
		if calls.Load() != n {
			return fmt.Errorf("%d callbacks for %d", calls.Load(), n)
		}
		return nil
	})
}

// blocked runs f while the first stream waits for the word at the start of the
// block, and lets it go on afterwards.
func blocked(d device.Driver, b device.Block, s []device.Stream, f func() error) error {
	if err := s[0].WaitValue(b.Addr, 1, device.Equal); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, d.Copy(in(b, 0, binary.NativeEndian.AppendUint64(nil, 1))), s[0].Sync(patience))
}

func checkTimeout(d device.Driver) error {
	if !d.Caps().Values {
		return nil
	}
	return with(d, 64, 1, func(_ *kit, b device.Block, _ []byte, s []device.Stream) error {
		return blocked(d, b, s, func() error {
			return wants("waiting for a stream that waits", s[0].Sync(5*time.Millisecond), device.ErrTimeout)
		})
	})
}

// checkOverlap: a stream that waits holds no other up.
func checkOverlap(d device.Driver) error {
	if !d.Caps().Values {
		return nil
	}
	return with(d, 1<<20, 2, func(_ *kit, b device.Block, host []byte, s []device.Stream) error {
		copy(host, pattern(8, len(host)))
		var passed atomic.Bool
		return blocked(d, b, s, func() error {
			if err := errors.Join(s[0].Do(func(error) { passed.Store(true) }),
				s[1].Copy(in(b, 64, host[64:])), s[1].Sync(patience)); err != nil {
				return err
			}
			if passed.Load() {
				return errors.New("a stream went on although its value has not come")
			}
			return holds(d, b, 64, host[64:])
		})
	})
}

func checkValues(d device.Driver) error {
	return with(d, 4096, 2, func(_ *kit, b device.Block, _ []byte, s []device.Stream) error {
		if !d.Caps().Values {
			return errors.Join(wants("a value where there are none", s[0].WriteValue(b.Addr, 1), device.ErrUnsupported),
				wants("waiting where there are no values", s[0].WaitValue(b.Addr, 1, device.Equal), device.ErrUnsupported))
		}
		for i, c := range []struct {
			cond              device.Condition
			no, value, passes uint64
		}{
			{device.AtLeast, 4, 5, 6},
			{device.Equal, 6, 5, 5},
			{device.AnyBit, 1, 6, 2},
			{device.NotBoth, ^uint64(3), 3, 0},
		} {
			at := b.Addr + device.Addr(8*i)
			var passed atomic.Bool
			if err := errors.Join(
				s[1].WriteValue(at, c.no), s[1].Sync(patience),
				s[0].WaitValue(at, c.value, c.cond), s[0].Do(func(error) { passed.Store(true) }),
				s[1].WriteValue(b.Addr+1024, 1), s[1].Sync(patience), // some work elsewhere
			); err != nil {
				return err
			}
			if passed.Load() {
				return fmt.Errorf("condition %d passes %d against %d", c.cond, c.no, c.value)
			}
			if err := errors.Join(s[1].WriteValue(at, c.passes), s[0].Sync(patience)); err != nil {
				return fmt.Errorf("condition %d, %d against %d: %w", c.cond, c.passes, c.value, err)
			}
		}
		return holds(d, b, 1024, binary.NativeEndian.AppendUint64(nil, 1))
	})
}

// checkDestroy: what waits in a stream is told, once, and the stream is over.
func checkDestroy(d device.Driver) error {
	return with(d, 4096, 1, func(_ *kit, b device.Block, host []byte, s []device.Stream) error {
		if d.Caps().Values {
			if err := s[0].WaitValue(b.Addr, 77, device.Equal); err != nil {
				return err
			}
		}
		told := make(chan error, 2)
		if err := errors.Join(s[0].Do(func(err error) { told <- err }), s[0].Destroy(), s[0].Destroy()); err != nil {
			return err
		}
		select {
		case err := <-told:
			if d.Caps().Values && err == nil {
				return errors.New("work that was dropped is reported as done")
			}
		case <-time.After(patience):
			return errors.New("a callback in a destroyed stream does not come")
		}
		return errors.Join(
			wants("a copy on a destroyed stream", s[0].Copy(in(b, 0, host)), device.ErrClosed),
			wants("a callback on a destroyed stream", s[0].Do(func(err error) { told <- err }), device.ErrClosed),
		)
	})
}

// checkClose leaves everything behind.
func checkClose(d device.Driver) error {
	b, err := d.Alloc(4096, device.AllocOptions{Mappable: true})
	_, hostErr := d.AllocHost(4096)
	s, streamErr := d.NewStream(0)
	_, eventErr := d.NewEvent()
	if err := errors.Join(err, hostErr, streamErr, eventErr); err != nil {
		return err
	}
	if d.Caps().Mapping != "" {
		if _, err := d.Map(b); err != nil {
			return err
		}
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		return err
	}
	_, allocErr := d.Alloc(1, device.AllocOptions{})
	_, newErr := d.NewStream(0)
	return errors.Join(
		wants("Alloc after Close", allocErr, device.ErrClosed), wants("NewStream after Close", newErr, device.ErrClosed),
		wants("Copy after Close", d.Copy(in(b, 0, []byte{1})), device.ErrClosed),
		wants("a stream after Close", s.Copy(), device.ErrClosed),
	)
}
