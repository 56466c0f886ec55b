package devicetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/device"
)

func checkAlloc(d device.Driver) (err error) {
	k := &kit{d: d}
	defer k.close(&err)
	c := d.Caps()
	if c.Align < 8 {
		return fmt.Errorf("blocks are aligned to %d, want 8 at least", c.Align)
	}
	var blocks []device.Block
	for _, size := range []uint64{1, 31, 4096, 100_000, 3 << 20} {
		b, err := k.block(size)
		if err != nil {
			return err
		}
		if uint64(b.Addr)%c.Align != 0 || b.Size != size {
			return fmt.Errorf("block of %d bytes is %+v, want a multiple of %d", size, b, c.Align)
		}
		for _, o := range blocks {
			if b.Addr < o.Addr+device.Addr(o.Size) && o.Addr < b.Addr+device.Addr(b.Size) {
				return fmt.Errorf("blocks %+v and %+v overlap", o, b)
			}
		}
		blocks = append(blocks, b)
	}
	u := d.Usage()
	if u.Blocks != len(blocks) || u.Bytes < 3<<20 {
		return fmt.Errorf("usage is %+v with %d blocks", u, len(blocks))
	}
	for i, b := range blocks { // each has its own bytes
		if err := d.Copy(in(b, 0, pattern(byte(i), int(b.Size)))); err != nil {
			return err
		}
	}
	for i, b := range blocks {
		if err := holds(d, b, 0, pattern(byte(i), int(b.Size))); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

func checkAllocRefusals(d device.Driver) error {
	_, err := d.Alloc(0, device.AllocOptions{})
	_, hostErr := d.AllocHost(0)
	_, negative := d.AllocHost(-1)
	b, allocErr := d.Alloc(64, device.AllocOptions{})
	h, bufErr := d.AllocHost(64)
	if err := errors.Join(
		wants("an empty block", err, device.ErrSize), wants("an empty buffer", hostErr, device.ErrSize),
		wants("a negative buffer", negative, device.ErrSize), allocErr, bufErr,
	); err != nil {
		return err
	}
	inside := device.Block{Addr: b.Addr + 8, Size: 56}
	return errors.Join(
		wants("freeing the inside of a block", d.Free(inside), device.ErrArgument),
		wants("freeing what was never allocated", d.Free(device.Block{Addr: 8, Size: 8}), device.ErrArgument),
		d.Free(b),
		wants("freeing twice", d.Free(b), device.ErrArgument),
		wants("freeing a Go slice", d.FreeHost(make([]byte, 8)), device.ErrArgument),
		d.FreeHost(h),
		wants("freeing a buffer twice", d.FreeHost(h), device.ErrArgument),
		wants("copying into freed memory", d.Copy(in(b, 0, []byte{1})), device.ErrArgument),
	)
}

func checkCopy(d device.Driver) error {
	return with(d, 1<<16, 0, func(k *kit, b device.Block, host []byte, _ []device.Stream) error {
		for _, r := range [][2]int{{0, 1 << 16}, {1, 1}, {13, 1000}, {1<<16 - 3, 3}, {100, 0}} {
			want := pattern(byte(r[1]), r[1])
			if err := d.Copy(in(b, r[0], want)); err != nil {
				return err
			}
			if err := holds(d, b, r[0], want); err != nil {
				return err
			}
		}
		copy(host, pattern(9, len(host))) // pinned memory does as well
		if err := d.Copy(in(b, 0, host)); err != nil {
			return err
		}
		o, err := k.block(4096)
		if err != nil {
			return err
		}
		if err := d.Copy(device.Copy{Dir: device.Within, Dev: o.Addr + 8, From: b.Addr + 1000, Len: 4000}); err != nil {
			return err
		}
		return holds(d, o, 8, host[1000:5000])
	})
}

func checkCopyRefusals(d device.Driver) error {
	return with(d, 4096, 0, func(_ *kit, b device.Block, _ []byte, _ []device.Stream) error {
		bad := make([]byte, 8)
		return errors.Join(
			wants("a copy without direction", d.Copy(device.Copy{Dev: b.Addr, Host: bad}), device.ErrArgument),
			wants("a copy with two sources", d.Copy(device.Copy{Dir: device.Within, Dev: b.Addr, Host: bad}), device.ErrArgument),
			wants("a copy beyond the end", d.Copy(in(b, 4090, bad)), device.ErrRange, device.ErrArgument),
			wants("a copy from beyond the end", d.Copy(out(b, 4096, bad)), device.ErrRange, device.ErrArgument),
			wants("a copy to nowhere", d.Copy(device.Copy{Dir: device.In, Dev: 4096, Host: bad}), device.ErrArgument),
			holds(d, b, 0, make([]byte, 4096)),
		)
	})
}

func checkBatch(d device.Driver) error {
	return with(d, 1<<16, 1, func(_ *kit, b device.Block, host []byte, s []device.Stream) error {
		copy(host, pattern(5, len(host)))
		want := make([]byte, len(host))
		var list []device.Copy
		for i := range 40 { // later ones over earlier ones
			off, n := 700*i, 1000
			list = append(list, in(b, off, host[off:off+n]))
			copy(want[off:], host[off:off+n])
		}
		if err := d.Copy(list...); err != nil {
			return err
		}
		if err := errors.Join(holds(d, b, 0, want), d.Copy(), s[0].Copy()); err != nil {
			return err
		}
		clear(want)
		if err := d.Copy(in(b, 0, want)); err != nil {
			return err
		}
		if err := errors.Join(s[0].Copy(list[10:20]...), s[0].Sync(patience)); err != nil {
			return err
		}
		copy(want[7000:], host[7000:700*19+1000])
		return holds(d, b, 0, want)
	})
}

func checkInspect(d device.Driver) error {
	return with(d, 4096, 0, func(_ *kit, b device.Block, host []byte, _ []device.Stream) error {
		whole, err := d.Inspect(b.Addr, b.Size)
		part, partErr := d.Inspect(b.Addr+100, 5)
		_, beyond := d.Inspect(b.Addr+4000, 200)
		pinned, pinnedErr := d.Inspect(addrOf(host), 10)
		foreign, foreignErr := d.Inspect(addrOf(make([]byte, 64)), 64)
		if err := errors.Join(err, partErr, pinnedErr, foreignErr); err != nil {
			return err
		}
		if beyond != nil && !errors.Is(beyond, device.ErrRange) {
			return fmt.Errorf("beyond the block: %w", beyond)
		}
		for name, c := range map[string][2]device.Place{
			"a block": {whole.Place, device.PlaceDevice}, "part of a block": {part.Place, device.PlaceDevice},
			"a pinned buffer": {pinned.Place, device.PlaceHost}, "a Go slice": {foreign.Place, device.PlaceUnknown},
		} {
			if c[0] != c[1] {
				return fmt.Errorf("%s is %v, want %v", name, c[0], c[1])
			}
		}
		return nil
	})
}

func checkMapping(d device.Driver) (err error) {
	c := d.Caps()
	b, err := d.Alloc(8192, device.AllocOptions{Mappable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Free(b)) }()
	m, err := d.Map(b)
	if c.Mapping == "" {
		return wants("mapping where there is none", err, device.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	if err := checkView(d, b, m); err != nil {
		return errors.Join(err, d.Unmap(m))
	}
	if err := errors.Join(
		wants("freeing a mapped block", d.Free(b), device.ErrArgument), d.Unmap(m),
		wants("unmapping twice", d.Unmap(m), device.ErrArgument),
	); err != nil {
		return err
	}
	if c.MaxMapping == 0 {
		return nil
	}
	big, err := d.Alloc(c.MaxMapping+1, device.AllocOptions{})
	if err != nil {
		return err
	}
	_, err = d.Map(big)
	return errors.Join(wants("a mapping that is too large", err, device.ErrUnsupported), d.Free(big))
}

// checkView writes and reads through a mapping and through copies.
func checkView(d device.Driver, b device.Block, m *device.Mapping) error {
	if uint64(len(m.B)) != b.Size || m.Cached != d.Caps().MappingCached {
		return fmt.Errorf("mapping of %d bytes, cached %v, for %+v", len(m.B), m.Cached, b)
	}
	for off := 0; off < 17; off++ {
		for _, n := range []int{0, 1, 7, 8, 9, 64, 1000} {
			want := pattern(byte(off+n), n)
			m.Write(uint64(off), want)
			m.Fence(uint64(off))
			if err := holds(d, b, off, want); err != nil {
				return fmt.Errorf("written through the mapping: %w", err)
			}
			if err := d.Copy(in(b, off+2000, want)); err != nil {
				return err
			}
			got := make([]byte, n)
			m.Read(uint64(off+2000), got)
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%d bytes at %d read through the mapping differ from what was copied", n, off+2000)
			}
		}
	}
	return nil
}
