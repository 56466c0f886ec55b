package engine

import (
	"context"
	"math"
	"sync"
	"unsafe"

	"github.com/gohixl/hixl"
)

// MemHandle is registered memory.
type MemHandle struct {
	e    *Engine
	kind MemType
	span
	bytes  []byte // keeps Go's memory alive
	id     uint64
	region *hixl.Region

	mu   sync.Mutex // held while it is deregistered
	gone bool       // guarded by mu
}

// Addr returns the address of the first byte, by which transfers name it.
func (h *MemHandle) Addr() uintptr { return uintptr(h.addr) }

// Len returns the length in bytes.
func (h *MemHandle) Len() uint64 { return h.n }

// memKey is what makes memory the same.
type memKey struct {
	span
	kind MemType
}

// everything is what remote engines may do with registered memory.
const everything = hixl.LocalWrite | hixl.RemoteRead | hixl.RemoteWrite | hixl.RemoteAtomic

// RegisterMem makes memory usable in transfers, by this engine and by all others
// that are or will be connected: those who are connected already find it at the
// first transfer that names it. The same memory registered again gives the same
// handle. Nothing is pinned or copied, so that it takes the same time at any size.
//
// The error is [StatusParamInvalid] for no bytes, an address that is not mapped, or
// an unknown kind; [StatusUnsupported] for device memory without Config.Device;
// [StatusResourceExhausted] beyond [MaxRegions].
func (e *Engine) RegisterMem(m MemDesc, t MemType) (*MemHandle, error) {
	h, err := e.register(m, t)
	return h, fail("RegisterMem", "", err)
}

func (e *Engine) register(m MemDesc, t MemType) (*MemHandle, error) {
	x, err := m.span(t)
	if err != nil {
		return nil, err
	}
	e.regs.Lock()
	defer e.regs.Unlock()
	if err := e.open(); err != nil {
		return nil, err
	}
	key := memKey{x, t}
	if h := e.handles[key]; h != nil {
		return h, nil
	}
	mem, err := e.memory(m, t, x)
	if err != nil {
		return nil, err
	}
	h := &MemHandle{e: e, kind: t, span: x, bytes: m.Bytes}
	if mem == nil {
		h.region, err = e.c.Register(bytesAt(m, x), everything)
	} else {
		h.region, err = e.c.RegisterMemory(mem, hixl.MemoryOptions{Access: everything})
	}
	if err != nil {
		return nil, err
	}
	if h.id, err = e.dir.add(h.region, x); err != nil {
		_ = h.region.Deregister(ended)
		return nil, err
	}
	e.handles[key] = h
	e.mu.Lock()
	e.local.put(h, x)
	e.mu.Unlock()
	return h, nil
}

// span checks what can be checked of a range of memory.
func (m *MemDesc) span(t MemType) (span, error) {
	x := span{uint64(m.Addr), m.Len}
	if m.Bytes != nil {
		if m.Addr != 0 || m.Len != 0 {
			return x, invalid("memory is given by Bytes or by Addr and Len, not both")
		}
		x = span{addressOf(m.Bytes), uint64(len(m.Bytes))}
	}
	switch {
	case t != MemHost && t != MemDevice:
		return x, invalid("%v, allowed: MEM_DEVICE (0), MEM_HOST (1)", t)
	case x.addr == 0 || x.n == 0:
		return x, invalid("%d bytes at %#x: there is no memory", x.n, x.addr)
	case x.addr+x.n < x.addr || x.n > math.MaxInt || x.addr+x.n-1 > math.MaxUint:
		return x, invalid("%d bytes at %#x go beyond the end of all addresses", x.n, x.addr)
	case t == MemHost && m.Bytes == nil && !mapped(x):
		return x, invalid("%d bytes at %#x: not all are mapped into this process", x.n, x.addr)
	}
	return x, nil
}

// memory returns what is to be registered; nil is the host's own.
func (e *Engine) memory(m MemDesc, t MemType, x span) (hixl.Memory, error) {
	if t == MemHost {
		return nil, nil
	}
	if e.cfg.Device == nil {
		return nil, unsupported("device memory: Config.Device says how it is reached, and is nil")
	}
	mem, err := e.cfg.Device(m)
	switch {
	case err != nil:
		return nil, err
	case mem.Size() != x.n:
		return nil, invalid("Config.Device gave memory of %d bytes for %d", mem.Size(), x.n)
	}
	return mem, nil
}

// bytesAt is host memory as a slice.
func bytesAt(m MemDesc, x span) []byte {
	if m.Bytes != nil {
		return m.Bytes
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&m.Addr))), int(x.n)) // the caller vouches for it, see MemDesc
}

// DeregisterMem ends a registration: from now on nobody reaches the memory, and when
// it returns nil none of its bytes is being moved. When ctx ends before that, the
// error is [StatusTimeout], and it may be called again. Without a deadline of ctx it
// waits for [DefaultTimeout]. Deregistering twice is fine.
func (e *Engine) DeregisterMem(ctx context.Context, h *MemHandle) error {
	return fail("DeregisterMem", "", e.deregister(ctx, h))
}

func (e *Engine) deregister(ctx context.Context, h *MemHandle) error {
	if h == nil || h.e != e {
		return invalid("no handle of this engine")
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return nil
	}
	e.regs.Lock()
	if key := (memKey{h.span, h.kind}); e.handles[key] == h {
		delete(e.handles, key)
	}
	e.regs.Unlock()
	e.mu.Lock()
	e.local.remove(h)
	e.mu.Unlock()
	e.dir.remove(h.id)
	if err := h.region.Deregister(ctx); err != nil {
		return err
	}
	h.gone, h.bytes = true, nil
	return nil
}
