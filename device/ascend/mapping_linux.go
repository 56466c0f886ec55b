//go:build amd64 || arm64

package ascend

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/device"
)

// The two ways to map device memory, as Caps.Mapping names them.
const (
	byHAL = "halHostRegister"
	byVMM = "virtual memory with host access"
)

// mapped is a mapping that is alive.
type mapped struct {
	b    *block // nil for memory of others
	src  uintptr
	vmm  bool
	view *device.Mapping
}

// vmm is a block of virtual memory management.
type vmm struct {
	p, size, handle        uintptr
	mapped, host, reserved bool
}

// probeMapping finds out which way works, by trying.
func (d *Device) probeMapping() {
	if d.cfg.NoMapping {
		d.why = "Config.NoMapping says so"
		return
	}
	var reasons []error
	for _, way := range []string{byHAL, byVMM} {
		d.caps.Mapping, d.caps.MaxMapping = way, d.cfg.MaxMapping
		err := d.tryMapping()
		if err == nil {
			d.why = ""
			return
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", way, err))
	}
	d.caps.Mapping, d.caps.MaxMapping = "", 0
	d.why = errors.Join(reasons...).Error()
}

// tryMapping writes a page through a mapping and compares what a copy sees.
func (d *Device) tryMapping() (err error) {
	b, err := d.Alloc(hostPage, device.AllocOptions{Mappable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Free(b)) }()
	m, err := d.Map(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Unmap(m)) }()
	want, got := make([]byte, 256), make([]byte, 256)
	for i := range want {
		want[i] = byte(i*7 + 1)
	}
	m.Write(64, want)
	m.Fence(64)
	if err := d.Copy(device.Copy{Dir: device.Out, Dev: b.Addr + 64, Host: got}); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("the device does not see what was written through the mapping")
	}
	return nil
}

// Map maps a block.
func (d *Device) Map(b device.Block) (*device.Mapping, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return nil, err
	}
	switch k := d.blocks[b.Addr]; {
	case d.caps.Mapping == "":
		return nil, fmt.Errorf("device %s: mapping %d bytes: %w: %s", d.name, b.Size, device.ErrUnsupported, d.why)
	case d.caps.MaxMapping != 0 && b.Size > d.caps.MaxMapping:
		return nil, fmt.Errorf("device %s: mapping %d bytes, at most %d: %w", d.name, b.Size, d.caps.MaxMapping, device.ErrUnsupported)
	case k != nil && k.Block != b:
		return nil, &device.ArgumentError{Call: "Map", What: fmt.Sprintf("%d bytes at %#x, which is no block", b.Size, uint64(b.Addr)), Allowed: "a block of Alloc"}
	case k != nil && k.vmm != nil:
		return d.mapVMM(k)
	default:
		return d.mapHAL(b, k)
	}
}

// mapHAL maps by halHostRegister, which takes whole pages.
func (d *Device) mapHAL(b device.Block, k *block) (*device.Mapping, error) {
	if b.Addr%hostPage != 0 {
		return nil, fmt.Errorf("device %s: mapping memory at %#x, which is no page: %w; allocate it mappable", d.name, uint64(b.Addr), device.ErrUnsupported)
	}
	var dst uintptr
	src := uintptr(b.Addr)
	err := d.run(call{"halHostRegister", "mapping " + bytesText(b.Size), func() int32 {
		return d.lib.hal.HostRegister(src, b.Size, devSVMMapHost, uint32(d.logic), &dst)
	}})
	if err != nil {
		return nil, err
	}
	return d.noteMapping(&mapped{b: k, src: src, view: &device.Mapping{Block: b, B: view(dst, int(b.Size))}}), nil
}

func (d *Device) noteMapping(k *mapped) *device.Mapping {
	d.maps[k.view] = k
	d.usage.Mappings++
	if k.b != nil {
		k.b.maps++
	}
	return k.view
}

// mapVMM gives the host access at the block's own address.
func (d *Device) mapVMM(k *block) (*device.Mapping, error) {
	if v := k.vmm; !v.host {
		desc := accessDesc{flags: accessReadWrite, location: location{typ: locHost}}
		err := d.run(call{"aclrtMemSetAccess", "mapping " + bytesText(k.Size), func() int32 { return d.lib.acl.SetAccess(v.p, v.size, &desc, 1) }})
		if err != nil {
			return nil, err
		}
		v.host = true
	}
	return d.noteMapping(&mapped{b: k, vmm: true, view: &device.Mapping{Block: k.Block, B: view(k.vmm.p, int(k.Size))}}), nil
}

// Unmap ends a mapping. Virtual memory stays accessible until it is freed.
func (d *Device) Unmap(m *device.Mapping) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	k := d.maps[m]
	if k == nil {
		return &device.ArgumentError{Call: "Unmap", What: "what is no mapping", Allowed: "one of Map, once"}
	}
	delete(d.maps, m)
	d.usage.Mappings--
	if k.b != nil {
		k.b.maps--
	}
	return d.unmap(k)
}

func (d *Device) unmap(k *mapped) error {
	h := &d.lib.hal
	switch {
	case k.vmm:
		return nil
	case h.UnregisterEx != nil: // the flag tells which of several uses ends
		return d.run(call{"halHostUnregisterEx", "ending a mapping", func() int32 { return h.UnregisterEx(k.src, uint32(d.logic), devSVMMapHost) }})
	default:
		return d.run(call{"halHostUnregister", "ending a mapping", func() int32 { return h.HostUnregister(k.src, uint32(d.logic)) }})
	}
}

// allocVMM reserves addresses, allocates memory and puts it there.
func (d *Device) allocVMM(size uint64) (_ *block, err error) {
	a := &d.lib.acl
	v := &vmm{size: uintptr((size + vmmGranule - 1) &^ (vmmGranule - 1))}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.freeVMM(v))
		}
	}()
	what := bytesText(uint64(v.size)) + " of virtual memory"
	prop := physicalProp{memAttr: memAttrHBMHuge, location: location{id: uint32(d.cfg.Device), typ: locDevice}}
	if err := d.run(call{"aclrtReserveMemAddress", what, func() int32 { return a.Reserve(&v.p, v.size, 0, 0, 0) }}); err != nil {
		return nil, err
	}
	v.reserved = true
	if err := d.run(call{"aclrtMallocPhysical", what, func() int32 { return a.MallocPhysical(&v.handle, v.size, &prop, 0) }}); err != nil {
		return nil, err
	}
	if err := d.run(call{"aclrtMapMem", what, func() int32 { return a.MapMem(v.p, v.size, 0, v.handle, 0) }}); err != nil {
		return nil, err
	}
	v.mapped = true
	return &block{Block: device.Block{Addr: device.Addr(v.p), Size: size}, raw: v.p, vmm: v}, nil
}

// freeVMM undoes what was done.
func (d *Device) freeVMM(v *vmm) error {
	a := &d.lib.acl
	var errs []error
	if v.mapped {
		errs = append(errs, d.run(call{"aclrtUnmapMem", "freeing virtual memory", func() int32 { return a.UnmapMem(v.p) }}))
	}
	if v.handle != 0 {
		errs = append(errs, d.run(call{"aclrtFreePhysical", "freeing virtual memory", func() int32 { return a.FreePhysical(v.handle) }}))
	}
	if v.reserved {
		errs = append(errs, d.run(call{"aclrtReleaseMemAddress", "freeing virtual memory", func() int32 { return a.Release(v.p) }}))
	}
	return errors.Join(errs...)
}
