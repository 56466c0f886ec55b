//go:build amd64 || arm64

package ascend

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gohixl/hixl/device"
)

// Device is an opened NPU. It implements device.Driver.
type Device struct {
	// Set once.
	cfg     Config
	name    string
	lib     *library
	thread  *thread
	ends    *ends
	info    device.Info
	caps    device.Caps
	why     string // why there is no mapping
	context uintptr
	logic   int32
	lowest  int32 // priorities, as the runtime numbers them
	highest int32

	mu      sync.Mutex
	closed  bool // guarded by mu, as all below
	blocks  map[device.Addr]*block
	buffers map[*byte]*buffer
	maps    map[*device.Mapping]*mapped
	streams map[*stream]struct{}
	events  map[*event]struct{}
	usage   device.Usage
	users   int // of Retain
}

var (
	_ device.Driver   = (*Device)(nil)
	_ device.Retainer = (*Device)(nil)
)

// Retain counts one more user, whose memory Close would pull away: it is refused until
// Release.
func (d *Device) Retain() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	d.users++
	return nil
}

// Release ends one Retain.
func (d *Device) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
}

// Open loads the runtime and opens a device. Whoever opens it closes it. The error
// is a *LibraryError when there is no runtime, a *device.NotAvailableError when it
// lacks what everything needs, a *device.DriverError when it fails, or one that
// unwraps to device.ErrArgument.
func Open(c Config) (*Device, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	lib, err := acquire(&c)
	if err != nil {
		return nil, err
	}
	d := &Device{
		cfg: c, name: nameOf(c.Device), lib: lib, thread: newThread(),
		blocks: make(map[device.Addr]*block), buffers: make(map[*byte]*buffer), maps: make(map[*device.Mapping]*mapped),
		streams: make(map[*stream]struct{}), events: make(map[*event]struct{}),
	}
	err = d.begin()
	d.ends = newEnds(d) // from here on the fields above are set
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// begin makes the thread's context and looks at what the device can do.
func (d *Device) begin() error {
	a := &d.lib.acl
	dev := int32(d.cfg.Device)
	err := d.run(
		call{"aclrtSetDevice", "taking the device", func() int32 { return a.SetDevice(dev) }},
		call{"aclrtCreateContext", "making a context", func() int32 { return a.CreateContext(&d.context, dev) }},
	)
	if err != nil {
		return err
	}
	d.info = device.Info{Name: d.name, Version: d.lib.version}
	if a.SocName != nil {
		d.thread.do(func() { d.info.Model = text(a.SocName()) })
	}
	d.logic = dev
	if a.LogicDevice != nil { // where the process sees fewer devices than there are
		user := dev
		_ = d.run(call{"aclrtGetLogicDevIdByUserDevId", "", func() int32 { return a.LogicDevice(&user, &d.logic) }})
	}
	have := d.lib.have
	d.caps = device.Caps{
		Align: blockAlign, Pinned: true, Batch: have["aclrtMemcpyBatchAsync"], Callbacks: have["aclrtLaunchHostFunc"],
		Values: have["aclrtValueWrite"] && have["aclrtValueWait"],
	}
	if a.PriorityRange != nil && a.CreateStreamConfig != nil {
		_ = d.run(call{"aclrtDeviceGetStreamPriorityRange", "", func() int32 { return a.PriorityRange(&d.lowest, &d.highest) }})
		d.caps.LeastPriority = int(min(d.highest-d.lowest, 0))
	}
	d.probeMapping()
	return nil
}

// Info names the device.
func (d *Device) Info() device.Info { return d.info }

// Caps says what it can do.
func (d *Device) Caps() device.Caps { return d.caps }

// NoMapping says why there is no mapping, "" when there is one.
func (d *Device) NoMapping() string { return d.why }

// Usage counts what is alive.
func (d *Device) Usage() device.Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usage
}

// alive reports ErrClosed after Close. Locked.
func (d *Device) alive() error {
	if d.closed {
		return device.ErrClosed
	}
	return nil
}

// Memory tells free memory of the device and all of it, in bytes. The error is a
// *device.NotAvailableError or *device.DriverError.
func (d *Device) Memory() (free, total uint64, err error) {
	var f, t uintptr
	const hbm = 1
	err = d.run(call{"aclrtGetMemInfo", "asking for free memory", func() int32 { return d.lib.acl.MemInfo(hbm, &f, &t) }})
	return uint64(f), uint64(t), err
}

// Close ends streams, gives memory back and ends the device's thread. What a lost
// device cannot give back any more is not an error. It fails with an error that
// unwraps to device.ErrBusy while a pool is open over the device.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.thread.over
		return nil
	}
	if n := d.users; n > 0 {
		d.mu.Unlock()
		return fmt.Errorf("device %s: %d pools are open over it, close them first: %w", d.name, n, device.ErrBusy)
	}
	d.closed = true
	streams, events := slices.Collect(maps.Keys(d.streams)), slices.Collect(maps.Keys(d.events))
	d.mu.Unlock()
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Destroy())
	}
	for _, e := range events {
		errs = append(errs, e.Destroy())
	}
	for _, k := range d.maps { // nobody changes these once closed is set
		errs = append(errs, d.unmap(k))
	}
	for _, b := range d.blocks {
		errs = append(errs, d.free(b))
	}
	for _, b := range d.buffers {
		errs = append(errs, d.freeHost(b))
	}
	a := &d.lib.acl
	if d.context != 0 {
		errs = append(errs, d.run(call{"aclrtDestroyContext", "ending the context", func() int32 { return a.DestroyContext(d.context) }}))
	}
	d.ends.close()
	d.lib.release(&d.cfg, func() {
		if a.ResetDevice != nil && d.context != 0 {
			errs = append(errs, d.run(call{"aclrtResetDevice", "giving the device back", func() int32 { return a.ResetDevice(int32(d.cfg.Device)) }}))
		}
	})
	d.thread.close()
	d.mu.Lock()
	d.usage = device.Usage{}
	d.mu.Unlock()
	return lostIsFine(errs)
}

// lostIsFine joins the errors that are not of a lost device.
func lostIsFine(errs []error) error {
	var kept []error
	for _, err := range errs {
		if err != nil && !errors.Is(err, device.ErrLost) {
			kept = append(kept, err)
		}
	}
	return errors.Join(kept...)
}

// bytesText is a number of bytes for errors.
func bytesText(n uint64) string { return fmt.Sprintf("%d bytes", n) }
