package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/pages"
)

// Driver is the process's own memory as a device: blocks are mapped pages, a
// stream is a goroutine with a queue of work, and every block can be mapped, since
// it is already there. It is the plain implementation of device.Driver, for code
// that runs with and without an accelerator, and for tests of that code.
type Driver struct {
	mu      sync.Mutex
	closed  bool // guarded by mu, as all below
	blocks  map[device.Addr]*span
	buffers map[*byte]*span
	maps    map[*device.Mapping]*span
	streams map[*stream]struct{}
	events  map[*event]struct{}
	usage   device.Usage
}

// span is memory the driver gave out.
type span struct {
	b     []byte
	unmap func() error
	users int // mappings; guarded by the driver's mu
}

var _ device.Driver = (*Driver)(nil)

// NewDriver makes a driver. Whoever makes it closes it.
func NewDriver() *Driver {
	return &Driver{
		blocks: make(map[device.Addr]*span), buffers: make(map[*byte]*span), maps: make(map[*device.Mapping]*span),
		streams: make(map[*stream]struct{}), events: make(map[*event]struct{}),
	}
}

// Info names the host.
func (d *Driver) Info() device.Info {
	return device.Info{Name: "host", Model: runtime.GOARCH, Version: runtime.Version()}
}

// Caps says that everything works but priorities.
func (d *Driver) Caps() device.Caps {
	return device.Caps{
		Align: uint64(os.Getpagesize()), Mapping: "host memory", MappingCached: true, Batch: true, Values: true, Callbacks: true,
	}
}

// Usage counts what is alive.
func (d *Driver) Usage() device.Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usage
}

// Alloc maps pages.
func (d *Driver) Alloc(size uint64, _ device.AllocOptions) (device.Block, error) {
	s, err := d.alloc(size, func(s *span) {
		d.blocks[addrOf(s.b)] = s
		d.usage.Blocks++
		d.usage.Bytes += size
	})
	if err != nil {
		return device.Block{}, err
	}
	return device.Block{Addr: addrOf(s.b), Size: size}, nil
}

// AllocHost maps pages too.
func (d *Driver) AllocHost(size int) ([]byte, error) {
	s, err := d.alloc(uint64(max(size, 0)), func(s *span) {
		d.buffers[&s.b[0]] = s
		d.usage.HostBuffers++
		d.usage.HostBytes += uint64(size)
	})
	if err != nil {
		return nil, err
	}
	return s.b, nil
}

func (d *Driver) alloc(size uint64, note func(*span)) (*span, error) {
	if size < 1 || size > 1<<62 {
		return nil, fmt.Errorf("host: cannot allocate %d bytes, give 1 or more: %w", size, device.ErrSize)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, device.ErrClosed
	}
	b, unmap, err := pages.Map(int(size))
	if err != nil {
		return nil, fmt.Errorf("host: mapping %d bytes: %w: %w", size, device.ErrNoMemory, err)
	}
	s := &span{b: b, unmap: unmap}
	note(s)
	return s, nil
}

func addrOf(b []byte) device.Addr {
	return device.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Free unmaps a block.
func (d *Driver) Free(b device.Block) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.blocks[b.Addr]
	switch {
	case d.closed:
		return device.ErrClosed
	case s == nil || uint64(len(s.b)) != b.Size:
		return &device.ArgumentError{Call: "Free", What: fmt.Sprintf("%d bytes at %#x, which is no block", b.Size, uint64(b.Addr)), Allowed: "a block of Alloc, once"}
	case s.users > 0:
		return &device.ArgumentError{Call: "Free", What: "a block that is mapped", Allowed: "it to Free after Unmap"}
	}
	delete(d.blocks, b.Addr)
	d.usage.Blocks--
	d.usage.Bytes -= b.Size
	return s.unmap()
}

// FreeHost unmaps a buffer.
func (d *Driver) FreeHost(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.buffers[unsafe.SliceData(b)]
	switch {
	case d.closed:
		return device.ErrClosed
	case s == nil || len(s.b) != len(b):
		return &device.ArgumentError{Call: "FreeHost", What: "a slice of other memory", Allowed: "what AllocHost returned, once"}
	}
	delete(d.buffers, &s.b[0])
	d.usage.HostBuffers--
	d.usage.HostBytes -= uint64(len(b))
	return s.unmap()
}

// Inspect tells what a block, or a buffer of AllocHost, is.
func (d *Driver) Inspect(addr device.Addr, size uint64) (device.Attr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	page := os.Getpagesize()
	if s := d.around(addr); s != nil {
		a := device.Attr{Place: device.PlaceDevice, PageSize: page}
		return a, within(s, addr, size)
	}
	for _, s := range d.buffers {
		if off := uint64(addr - addrOf(s.b)); off < uint64(len(s.b)) {
			a := device.Attr{Place: device.PlaceHost, PageSize: page}
			return a, within(s, addr, size)
		}
	}
	return device.Attr{}, nil
}

// around returns the block in which addr lies. Locked.
func (d *Driver) around(addr device.Addr) *span {
	for at, s := range d.blocks {
		if uint64(addr-at) < uint64(len(s.b)) {
			return s
		}
	}
	return nil
}

func within(s *span, addr device.Addr, size uint64) error {
	off := uint64(addr - addrOf(s.b))
	if !device.Contains(uint64(len(s.b)), off, size) {
		return &device.RangeError{Off: off, Len: size, Size: uint64(len(s.b))}
	}
	return nil
}

// bytes returns size bytes at addr. Locked.
func (d *Driver) bytes(addr device.Addr, size uint64) ([]byte, error) {
	s := d.around(addr)
	if s == nil {
		return nil, &device.ArgumentError{Call: "Copy", What: fmt.Sprintf("address %#x, which is in no block", uint64(addr)), Allowed: "one in a block of Alloc"}
	}
	if err := within(s, addr, size); err != nil {
		return nil, err
	}
	off := uint64(addr - addrOf(s.b))
	return s.b[off : off+size], nil
}

// Copy copies.
func (d *Driver) Copy(list ...device.Copy) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return device.ErrClosed
	}
	for i := range list {
		if err := d.check(&list[i]); err != nil {
			return err
		}
	}
	for i := range list {
		if err := d.move(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a copy that cannot work. Locked.
func (d *Driver) check(c *device.Copy) error {
	if err := device.CheckCopy(c); err != nil || c.Bytes() == 0 {
		return err
	}
	if _, err := d.bytes(c.Dev, c.Bytes()); err != nil {
		return err
	}
	if c.Dir != device.Within {
		return nil
	}
	_, err := d.bytes(c.From, c.Len)
	return err
}

// move does one copy. Locked.
func (d *Driver) move(c *device.Copy) error {
	if c.Bytes() == 0 {
		return nil
	}
	dev, err := d.bytes(c.Dev, c.Bytes())
	if err != nil {
		return err
	}
	switch c.Dir {
	case device.In:
		copy(dev, c.Host)
	case device.Out:
		copy(c.Host, dev)
	case device.Within:
		from, err := d.bytes(c.From, c.Len)
		if err != nil {
			return err
		}
		copy(dev, from)
	}
	return nil
}

// Map returns the block itself.
func (d *Driver) Map(b device.Block) (*device.Mapping, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.blocks[b.Addr]
	switch {
	case d.closed:
		return nil, device.ErrClosed
	case s == nil || uint64(len(s.b)) != b.Size:
		return nil, &device.ArgumentError{Call: "Map", What: fmt.Sprintf("%d bytes at %#x, which is no block", b.Size, uint64(b.Addr)), Allowed: "a block of Alloc"}
	}
	m := &device.Mapping{Block: b, B: s.b, Cached: true}
	d.maps[m] = s
	s.users++
	d.usage.Mappings++
	return m, nil
}

// Unmap ends a mapping.
func (d *Driver) Unmap(m *device.Mapping) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.maps[m]
	switch {
	case d.closed:
		return device.ErrClosed
	case s == nil:
		return &device.ArgumentError{Call: "Unmap", What: "what is no mapping", Allowed: "one of Map, once"}
	}
	delete(d.maps, m)
	s.users--
	d.usage.Mappings--
	return nil
}

// Close destroys what is left.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	streams := make([]*stream, 0, len(d.streams))
	for s := range d.streams {
		streams = append(streams, s)
	}
	d.mu.Unlock()
	for _, s := range streams { // outside the lock: their work takes it
		_ = s.Destroy()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.blocks {
		errs = append(errs, s.unmap())
	}
	for _, s := range d.buffers {
		errs = append(errs, s.unmap())
	}
	d.usage = device.Usage{}
	clear(d.blocks)
	clear(d.buffers)
	clear(d.maps)
	clear(d.events)
	return errors.Join(errs...)
}
