package devicetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/gohixl/hixl/device"
)

// DriverMaker opens a fresh driver for one check and arranges for its end by
// t.Cleanup; closing twice is fine.
type DriverMaker func(t *testing.T) device.Driver

// driverCheck is one part of the suite for drivers.
type driverCheck struct {
	name string
	run  func(d device.Driver) error
}

var driverChecks = []driverCheck{
	{"Alloc", checkAlloc},
	{"AllocRefusals", checkAllocRefusals},
	{"Copy", checkCopy},
	{"CopyRefusals", checkCopyRefusals},
	{"Batch", checkBatch},
	{"Inspect", checkInspect},
	{"Mapping", checkMapping},
	{"StreamOrder", checkStreamOrder},
	{"StreamVisibility", checkStreamVisibility},
	{"StreamRefusals", checkStreamRefusals},
	{"Events", checkEvents},
	{"Callbacks", checkCallbacks},
	{"Timeout", checkTimeout},
	{"Overlap", checkOverlap},
	{"Values", checkValues},
	{"Destroy", checkDestroy},
	{"CloseWithLeftovers", checkClose},
}

// RunDriver checks every promise of device.Driver, Stream and Event: allocation
// and its refusals, copies, mappings, order in a stream and overlap between
// streams, visibility, events, values, callbacks, and that nothing is left over
// after each check.
func RunDriver(t *testing.T, maker DriverMaker) {
	t.Helper()
	for _, c := range driverChecks {
		t.Run(c.name, func(t *testing.T) {
			d := maker(t)
			if err := runDriverCheck(d, c); err != nil {
				t.Error(err)
			}
		})
	}
}

func runDriverCheck(d device.Driver, c driverCheck) error {
	if err := c.run(d); err != nil {
		return err
	}
	if u := d.Usage(); u != (device.Usage{}) {
		return fmt.Errorf("left over: %+v", u)
	}
	return d.Close()
}

// kit holds what a check allocates and gives it all back.
type kit struct {
	d       device.Driver
	release []func() error
}

func (k *kit) close(err *error) {
	for i := len(k.release) - 1; i >= 0; i-- {
		if e := k.release[i](); *err == nil {
			*err = e
		}
	}
}

func (k *kit) block(size uint64) (device.Block, error) {
	b, err := k.d.Alloc(size, device.AllocOptions{})
	if err == nil {
		k.release = append(k.release, func() error { return k.d.Free(b) })
	}
	return b, err
}

func (k *kit) buffer(size int) ([]byte, error) {
	b, err := k.d.AllocHost(size)
	if err == nil {
		k.release = append(k.release, func() error { return k.d.FreeHost(b) })
	}
	return b, err
}

func (k *kit) stream() (device.Stream, error) {
	s, err := k.d.NewStream(0)
	if err == nil {
		k.release = append(k.release, s.Destroy)
	}
	return s, err
}

// with runs f with a block of size bytes that holds zeros, a buffer of the same
// size and n streams.
func with(d device.Driver, size, n int, f func(k *kit, b device.Block, host []byte, s []device.Stream) error) (err error) {
	k := &kit{d: d}
	defer k.close(&err)
	b, err := k.block(uint64(size))
	if err != nil {
		return err
	}
	if err := d.Copy(in(b, 0, make([]byte, size))); err != nil {
		return err
	}
	host, err := k.buffer(size)
	if err != nil {
		return err
	}
	s := make([]device.Stream, n)
	for i := range s {
		if s[i], err = k.stream(); err != nil {
			return err
		}
	}
	return f(k, b, host, s)
}

func in(b device.Block, off int, from []byte) device.Copy {
	return device.Copy{Dir: device.In, Dev: b.Addr + device.Addr(off), Host: from}
}

func out(b device.Block, off int, to []byte) device.Copy {
	return device.Copy{Dir: device.Out, Dev: b.Addr + device.Addr(off), Host: to}
}

// holds compares the content of a block with what it must be.
func holds(d device.Driver, b device.Block, off int, want []byte) error {
	got := make([]byte, len(want))
	if err := d.Copy(out(b, off, got)); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				return fmt.Errorf("byte %d of %d at %d is %#x, want %#x", i, len(got), off, got[i], want[i])
			}
		}
	}
	return nil
}

// wants complains unless err is one of the given.
func wants(what string, err error, any ...error) error {
	for _, w := range any {
		if errors.Is(err, w) {
			return nil
		}
	}
	return fmt.Errorf("%s gives error %q, want %q", what, fmt.Sprint(err), fmt.Sprint(any[0]))
}
