//go:build amd64 || arm64

package ascend

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/gohixl/hixl/device"
)

// piece bounds one synchronous copy, so that the device's thread has time for
// others in between.
const piece = 1 << 20

// ends of a copy as C sees them.
func endsOf(c *device.Copy) (dst, src, n uintptr, kind int32) {
	host := uintptr(unsafe.Pointer(unsafe.SliceData(c.Host)))
	switch c.Dir {
	case device.In:
		return uintptr(c.Dev), host, uintptr(len(c.Host)), copyH2D
	case device.Out:
		return host, uintptr(c.Dev), uintptr(len(c.Host)), copyD2H
	default:
		return uintptr(c.Dev), uintptr(c.From), uintptr(c.Len), copyD2D
	}
}

func whatOf(c *device.Copy) string { return fmt.Sprintf("%d bytes %v", c.Bytes(), c.Dir) }

// Copy copies now.
func (d *Device) Copy(list ...device.Copy) error {
	d.mu.Lock()
	err := d.alive()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range list {
		if err := device.CheckCopy(&list[i]); err != nil {
			return err
		}
		if err := d.ours(&list[i]); err != nil {
			return err
		}
	}
	for i := range list {
		if err := d.copyNow(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// ours refuses a copy that begins in a block and ends outside: the runtime would
// notice, but only once a part of it was moved.
func (d *Device) ours(c *device.Copy) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.inBlock(c.Dev, c.Bytes()); err != nil || c.Dir != device.Within {
		return err
	}
	return d.inBlock(c.From, c.Len)
}

// inBlock checks against the block that addr lies in, if it is one of ours. Locked.
func (d *Device) inBlock(addr device.Addr, n uint64) error {
	b := d.blocks[addr]
	if b == nil {
		for at, k := range d.blocks {
			if uint64(addr-at) < k.Size {
				b = k
				break
			}
		}
	}
	if b == nil {
		return nil // a framework's, or nobody's: the runtime knows
	}
	if off := uint64(addr - b.Addr); !device.Contains(b.Size, off, n) {
		return &device.RangeError{Off: off, Len: n, Size: b.Size}
	}
	return nil
}

func (d *Device) copyNow(c *device.Copy) error {
	defer runtime.KeepAlive(c.Host)
	dst, src, n, kind := endsOf(c)
	for n > 0 {
		k := min(n, piece)
		err := d.run(call{"aclrtMemcpy", whatOf(c), func() int32 { return d.lib.acl.Memcpy(dst, k, src, k, kind) }})
		if err != nil {
			return err
		}
		dst, src, n = dst+k, src+k, n-k
	}
	return nil
}

// batch is a list of copies as aclrtMemcpyBatchAsync takes it. All go one way.
type batch struct {
	dsts, srcs, sizes []uintptr
	attr              batchAttr
	index, failed     uintptr
}

// newBatch makes a batch of at least two copies between host and device that all
// go one way, or nil.
func (d *Device) newBatch(list []device.Copy) *batch {
	if !d.caps.Batch || len(list) < 2 || list[0].Dir == device.Within {
		return nil
	}
	b := &batch{}
	host, dev := location{typ: locHost}, location{id: uint32(d.cfg.Device), typ: locDevice}
	b.attr = batchAttr{dst: dev, src: host}
	if list[0].Dir == device.Out {
		b.attr = batchAttr{dst: host, src: dev}
	}
	for i := range list {
		dst, src, n, _ := endsOf(&list[i])
		if list[i].Dir != list[0].Dir {
			return nil
		}
		if n > 0 {
			b.dsts, b.srcs, b.sizes = append(b.dsts, dst), append(b.srcs, src), append(b.sizes, n)
		}
	}
	if len(b.sizes) < 2 {
		return nil
	}
	return b
}

func (b *batch) call(d *Device, stream uintptr) int32 {
	sizes := unsafe.Pointer(&b.sizes[0])
	return d.lib.acl.BatchAsync(unsafe.Pointer(&b.dsts[0]), sizes, unsafe.Pointer(&b.srcs[0]), sizes, uintptr(len(b.sizes)),
		&b.attr, unsafe.Pointer(&b.index), 1, unsafe.Pointer(&b.failed), stream)
}
