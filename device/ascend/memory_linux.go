//go:build amd64 || arm64

package ascend

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gohixl/hixl/device"
)

// block is memory of the device.
type block struct {
	device.Block
	raw  uintptr // what is to be freed
	vmm  *vmm    // when it is virtual memory
	maps int     // guarded by the device's mu
}

// buffer is pinned host memory.
type buffer struct {
	p uintptr
	b []byte
}

// Alloc allocates device memory, on huge pages where they fit.
func (d *Device) Alloc(size uint64, o device.AllocOptions) (device.Block, error) {
	if size < 1 || size > math.MaxInt64/2 {
		return device.Block{}, fmt.Errorf("device %s: cannot allocate %d bytes, give 1 or more: %w", d.name, size, device.ErrSize)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return device.Block{}, err
	}
	b, err := d.alloc(size, o.Mappable && d.mappable(size))
	if err != nil {
		return device.Block{}, err
	}
	d.blocks[b.Addr] = b
	d.usage.Blocks++
	d.usage.Bytes += size
	return b.Block, nil
}

func (d *Device) mappable(size uint64) bool {
	return d.caps.Mapping != "" && (d.caps.MaxMapping == 0 || size <= d.caps.MaxMapping)
}

func (d *Device) alloc(size uint64, mappable bool) (*block, error) {
	switch {
	case mappable && d.caps.Mapping == byVMM:
		return d.allocVMM(size)
	case mappable:
		return d.allocPages(size)
	}
	p, err := d.malloc(size)
	return &block{Block: device.Block{Addr: device.Addr(p), Size: size}, raw: p}, err
}

func (d *Device) malloc(size uint64) (p uintptr, err error) {
	err = d.run(call{"aclrtMalloc", bytesText(size) + " of device memory", func() int32 {
		return d.lib.acl.Malloc(&p, uintptr(size), hugeFirst)
	}})
	return p, err
}

// allocPages allocates whole pages of the host, which halHostRegister wants. The
// runtime promises less, so that there is a page to spare when it has to be.
func (d *Device) allocPages(size uint64) (*block, error) {
	rounded := (size + hostPage - 1) &^ (hostPage - 1)
	p, err := d.malloc(rounded)
	if err != nil {
		return nil, err
	}
	if p%hostPage != 0 {
		if err := d.freeRaw(p); err != nil {
			return nil, err
		}
		if p, err = d.malloc(rounded + hostPage); err != nil {
			return nil, err
		}
	}
	at := (p + hostPage - 1) &^ (hostPage - 1)
	return &block{Block: device.Block{Addr: device.Addr(at), Size: size}, raw: p}, nil
}

// Free gives a block back.
func (d *Device) Free(b device.Block) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	k := d.blocks[b.Addr]
	switch {
	case k == nil || k.Block != b:
		return &device.ArgumentError{Call: "Free", What: fmt.Sprintf("%d bytes at %#x, which is no block", b.Size, uint64(b.Addr)), Allowed: "a block of Alloc, once"}
	case k.maps > 0:
		return &device.ArgumentError{Call: "Free", What: "a block that is mapped", Allowed: "it to Free after Unmap"}
	}
	delete(d.blocks, b.Addr)
	d.usage.Blocks--
	d.usage.Bytes -= b.Size
	return d.free(k)
}

func (d *Device) free(b *block) error {
	if b.vmm != nil {
		return d.freeVMM(b.vmm)
	}
	return d.freeRaw(b.raw)
}

func (d *Device) freeRaw(p uintptr) error {
	return d.run(call{"aclrtFree", "freeing device memory", func() int32 { return d.lib.acl.Free(p) }})
}

// Inspect asks aclrtPointerGetAttributes, and for the size aclrtMemGetAddressRange
// where that exists.
func (d *Device) Inspect(addr device.Addr, size uint64) (device.Attr, error) {
	var a ptrAttributes
	err := d.run(call{"aclrtPointerGetAttributes", fmt.Sprintf("what lies at %#x", uint64(addr)), func() int32 {
		return d.lib.acl.PointerAttrs(uintptr(addr), &a)
	}})
	if err != nil {
		return device.Attr{}, err
	}
	at := device.Attr{Device: int(a.location.id), PageSize: int(a.pageSize)}
	switch a.location.typ {
	case locDevice:
		at.Place = device.PlaceDevice
		err = d.inRange(addr, size)
	case locHost, locHostNUMA:
		at.Place, at.Device = device.PlaceHost, 0
	}
	return at, err
}

// inRange checks that size bytes at addr are of one allocation, if the runtime
// says how large it is.
func (d *Device) inRange(addr device.Addr, size uint64) error {
	if d.lib.acl.AddressRange == nil {
		return nil
	}
	var base, n uintptr
	err := d.run(call{"aclrtMemGetAddressRange", "size of an allocation", func() int32 {
		return d.lib.acl.AddressRange(uintptr(addr), &base, &n)
	}})
	if err != nil {
		return err
	}
	if off := uint64(addr) - uint64(base); !device.Contains(uint64(n), off, size) {
		return &device.RangeError{Off: off, Len: size, Size: uint64(n)}
	}
	return nil
}

// AllocHost allocates pinned host memory.
func (d *Device) AllocHost(size int) ([]byte, error) {
	if size < 1 {
		return nil, fmt.Errorf("device %s: cannot allocate %d bytes, give 1 or more: %w", d.name, size, device.ErrSize)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return nil, err
	}
	k := &buffer{}
	err := d.run(call{"aclrtMallocHost", bytesText(uint64(size)) + " of pinned memory", func() int32 {
		return d.lib.acl.MallocHost(&k.p, uintptr(size))
	}})
	if err != nil {
		return nil, err
	}
	k.b = view(k.p, size)
	d.buffers[&k.b[0]] = k
	d.usage.HostBuffers++
	d.usage.HostBytes += uint64(size)
	return k.b, nil
}

// FreeHost gives pinned memory back.
func (d *Device) FreeHost(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	k := d.buffers[unsafe.SliceData(b)]
	if k == nil || len(k.b) != len(b) {
		return &device.ArgumentError{Call: "FreeHost", What: "a slice of other memory", Allowed: "what AllocHost returned, once"}
	}
	delete(d.buffers, &k.b[0])
	d.usage.HostBuffers--
	d.usage.HostBytes -= uint64(len(b))
	return d.freeHost(k)
}

func (d *Device) freeHost(b *buffer) error {
	return d.run(call{"aclrtFreeHost", "freeing pinned memory", func() int32 { return d.lib.acl.FreeHost(b.p) }})
}
