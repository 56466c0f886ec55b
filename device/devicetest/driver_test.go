package devicetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
)

// A suite that a wrong driver passes is worth nothing.
func TestDriverSuiteFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(*host.Driver) device.Driver
		check string
		says  string
	}{
		{"copies nothing", func(d *host.Driver) device.Driver { return &noCopy{d} }, "Copy", "want"},
		{"frees twice", func(d *host.Driver) device.Driver { return &freesTwice{d} }, "AllocRefusals", "freeing twice"},
		{"leaks", func(d *host.Driver) device.Driver { return &leaky{d} }, "Copy", "left over"},
		{"streams wait for each other", func(d *host.Driver) device.Driver { return &oneStream{Driver: d} }, "Overlap", "timeout"},
		{"a stream in any order", func(d *host.Driver) device.Driver {
			return &wrapped{d, func(s device.Stream) device.Stream { return &eagerStream{s, d} }}
		}, "StreamOrder", "want"},
		{"an early callback", func(d *host.Driver) device.Driver {
			return &wrapped{d, func(s device.Stream) device.Stream { return &earlyDo{s} }}
		}, "Destroy", "reported as done"},
		{"a callback that never comes", func(d *host.Driver) device.Driver {
			return &wrapped{d, func(s device.Stream) device.Stream { return &lateDo{s} }}
		}, "Callbacks", "has not come"},
		{"an event that waits for nothing", func(d *host.Driver) device.Driver {
			return &wrapped{d, func(s device.Stream) device.Stream { return &noWait{s} }}
		}, "Events", "came first"},
		{"lives on", func(d *host.Driver) device.Driver { return &undead{d} }, "CloseWithLeftovers", "after Close"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := host.NewDriver()
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			for _, k := range driverChecks {
				if k.name == c.check {
					require.ErrorContains(t, runDriverCheck(c.make(d), k), c.says)
					return
				}
			}
			t.Fatal("no such check")
		})
	}
}

type noCopy struct{ *host.Driver }

func (d *noCopy) Copy(...device.Copy) error { return nil }

type freesTwice struct{ *host.Driver }

func (d *freesTwice) Free(b device.Block) error {
	_ = d.Driver.Free(b)
	return nil
}

type leaky struct{ *host.Driver }

func (d *leaky) FreeHost([]byte) error { return nil }

type undead struct{ *host.Driver }

func (d *undead) Close() error { return nil }

// oneStream has one stream only.
type oneStream struct {
	*host.Driver
	s device.Stream
}

func (d *oneStream) NewStream(p int) (device.Stream, error) {
	if d.s != nil {
		return &shared{d.s}, nil
	}
	s, err := d.Driver.NewStream(p)
	d.s = s
	return s, err
}

type shared struct{ device.Stream }

func (s *shared) Sync(limit time.Duration) error { return s.Stream.Sync(min(limit, time.Second)) }

// wrapped puts something around each stream.
type wrapped struct {
	*host.Driver
	wrap func(device.Stream) device.Stream
}

func (d *wrapped) NewStream(p int) (device.Stream, error) {
	s, err := d.Driver.NewStream(p)
	return d.wrap(s), err
}

// eagerStream copies into the device at once.
type eagerStream struct {
	device.Stream
	d device.Driver
}

func (s *eagerStream) Copy(list ...device.Copy) error {
	if len(list) > 0 && list[0].Dir == device.In {
		return s.d.Copy(list...)
	}
	return s.Stream.Copy(list...)
}

type earlyDo struct{ device.Stream }

func (s *earlyDo) Do(f func(error)) error {
	f(nil)
	return nil
}

type lateDo struct{ device.Stream }

func (s *lateDo) Do(func(error)) error { return nil }

type noWait struct{ device.Stream }

func (s *noWait) WaitEvent(device.Event) error { return nil }

// Do returns only when f has run, so that the fault shows however late the
// scheduler lets a stream begin.
func (s *noWait) Do(f func(error)) error {
	return errors.Join(s.Stream.Do(f), s.Sync(patience))
}
