package staged

import (
	"errors"
	"fmt"

	"github.com/gohixl/hixl/device"
)

// Memory is memory of a device. It implements device.Memory, Addresser and Retainer.
// Make one with Pool.Alloc or Pool.Adopt.
type Memory struct {
	pool  *Pool
	block device.Block
	owned bool            // to be freed
	view  *device.Mapping // nil when it is not mapped

	// Guarded by the pool's mu.
	closed  bool
	users   int // of Retain
	pending int // operations not reported
}

var (
	_ device.Memory    = (*Memory)(nil)
	_ device.Addresser = (*Memory)(nil)
	_ device.Retainer  = (*Memory)(nil)
	_ device.Congester = (*Memory)(nil)
)

// Alloc allocates size bytes of device memory, 1 or more, fills them with zeros, and
// maps them where that is possible. Whoever allocates closes. Errors: device.ErrSize,
// device.ErrNoMemory, device.ErrLost, the driver's own.
func (p *Pool) Alloc(size uint64) (*Memory, error) {
	if err := p.state(); err != nil {
		return nil, err
	}
	b, err := p.drv.Alloc(size, device.AllocOptions{Mappable: p.caps.Mapping != ""})
	if err != nil {
		return nil, err
	}
	if err := p.zero(b); err != nil {
		return nil, errors.Join(err, p.drv.Free(b))
	}
	return p.enter(&Memory{pool: p, block: b, owned: true})
}

// zero clears a block: what was there before is nobody's to read.
func (p *Pool) zero(b device.Block) error {
	const step = 1 << 20
	zeros := make([]byte, min(b.Size, step))
	for off := uint64(0); off < b.Size; off += step {
		n := min(step, b.Size-off)
		if err := p.drv.Copy(device.Copy{Dir: device.In, Dev: b.Addr + device.Addr(off), Host: zeros[:n]}); err != nil {
			return err
		}
	}
	return nil
}

// Adopt makes a memory of device memory that somebody else allocated, such as a
// framework's tensor, and who must not free it before Close. Errors: device.ErrRange
// when it is not all of one allocation, an *device.ArgumentError when it is not
// memory of this device, the driver's own.
func (p *Pool) Adopt(b device.Block) (*Memory, error) {
	if err := p.state(); err != nil {
		return nil, err
	}
	if b.Size == 0 {
		return nil, fmt.Errorf("staged: adopting an empty block: %w", device.ErrSize)
	}
	a, err := p.drv.Inspect(b.Addr, b.Size)
	if err != nil {
		return nil, err
	}
	if a.Place != device.PlaceDevice {
		return nil, &device.ArgumentError{
			Call: "staged.Adopt", What: fmt.Sprintf("%#x, which is %v", uint64(b.Addr), a.Place),
			Allowed: "memory of device " + p.drv.Info().Name + "; host memory goes by device/host",
		}
	}
	return p.enter(&Memory{pool: p, block: b})
}

func (p *Pool) state() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return device.ErrClosed
	}
	return p.err
}

// enter maps a memory, if that goes, and counts it.
func (p *Pool) enter(m *Memory) (*Memory, error) {
	if p.caps.Mapping != "" && p.cfg.Small > 0 {
		if v, err := p.drv.Map(m.block); err == nil {
			m.view = v
		} // else copies do
	}
	p.mu.Lock()
	closed := p.closing
	if !closed {
		p.memories++
	}
	p.mu.Unlock()
	if closed {
		return nil, errors.Join(device.ErrClosed, m.free())
	}
	return m, nil
}

func (m *Memory) free() error {
	var errs []error
	if m.view != nil {
		errs = append(errs, m.pool.drv.Unmap(m.view))
	}
	if m.owned {
		errs = append(errs, m.pool.drv.Free(m.block))
	}
	return errors.Join(errs...)
}

// Close gives the memory back. It fails with an error that unwraps to device.ErrBusy
// while a region is registered over it or an operation is under way. Closing twice
// is fine.
func (m *Memory) Close() error {
	p := m.pool
	p.mu.Lock()
	switch {
	case m.closed:
		p.mu.Unlock()
		return nil
	case m.users > 0 || m.pending > 0:
		defer p.mu.Unlock()
		return fmt.Errorf("staged: %d regions are registered over this memory and %d operations under way: %w", m.users, m.pending, device.ErrBusy)
	}
	m.closed = true
	p.mu.Unlock()
	err := m.free()
	p.mu.Lock()
	p.memories--
	p.mu.Unlock()
	if errors.Is(err, device.ErrLost) {
		return nil // it went with the device
	}
	return err
}

// Retain counts a region; Close is refused until its Release.
func (m *Memory) Retain() error {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	if m.closed {
		return device.ErrClosed
	}
	m.users++
	return nil
}

// Release ends one Retain. It panics when there was none.
func (m *Memory) Release() {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	if m.users == 0 {
		panic("staged: Release without Retain")
	}
	m.users--
}

// Size is the number of bytes.
func (m *Memory) Size() uint64 { return m.block.Size }

// Bytes is nil: the CPU must not touch the memory, even where it is mapped.
func (m *Memory) Bytes() []byte { return nil }

// Address is where byte 0 lies in the device's address space.
func (m *Memory) Address() uint64 { return uint64(m.block.Addr) }

// Block is the memory as its driver knows it, for streams and kernels.
func (m *Memory) Block() device.Block { return m.block }

// Mapped reports whether small messages go through a mapping.
func (m *Memory) Mapped() bool { return m.view != nil }

// Congested reports whether more bytes than Config.Spill wait on the Go heap: a NIC
// takes nothing more for the memory until they do not.
func (m *Memory) Congested() bool {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	return m.pool.spilled > m.pool.cfg.Spill
}

// usable is why operations fail at once, or nil. Locked.
func (m *Memory) usable() error {
	if m.closed {
		return device.ErrClosed
	}
	return m.pool.err
}

// WriteV stages the bytes, or writes them through the mapping.
func (m *Memory) WriteV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	return m.vectored(v, writes, token, c)
}

// ReadV asks for the bytes, or reads them through the mapping.
func (m *Memory) ReadV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	return m.vectored(v, reads, token, c)
}

func (m *Memory) vectored(v []device.Vec, k kind, token uint64, c device.Completer) (bool, error) {
	if err := device.CheckVec(m.block.Size, v); err != nil {
		return true, err
	}
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := m.usable(); err != nil {
		return true, err
	}
	total := 0
	for i := range v {
		total += len(v[i].B)
	}
	if total == 0 || m.mapped(v, k, total) {
		return true, nil
	}
	o := p.getOp(m, token, c)
	for i := range v {
		p.cut(o, k, v[i])
	}
	p.wake.Signal()
	return false, nil
}

// mapped does a small operation through the mapping, if nothing before it is in its
// way. Locked.
func (m *Memory) mapped(v []device.Vec, k kind, total int) bool {
	p, limit := m.pool, m.pool.cfg.Small
	if k == reads {
		limit = p.cfg.SmallRead
	}
	if m.view == nil || total > limit {
		return false
	}
	for i := range v {
		if p.conflicts(m, v[i].Off, len(v[i].B), k == writes) {
			return false
		}
	}
	if k == reads {
		p.stats.MappedReads++
		for i := range v {
			m.view.Read(v[i].Off, v[i].B)
		}
		return true
	}
	p.stats.MappedWrites++
	last := uint64(0)
	for i := range v {
		m.view.Write(v[i].Off, v[i].B)
		last = v[i].Off
	}
	m.view.Fence(min(last, m.block.Size-1))
	return true
}

// cut makes parts of one piece of an operation. Locked.
func (p *Pool) cut(o *op, k kind, v device.Vec) {
	for b, off := v.B, v.Off; len(b) > 0; {
		n := min(len(b), p.cfg.Chunk)
		q := p.getPart()
		q.op, q.kind, q.off, q.n = o, k, off, n
		if k == reads {
			q.data = b[:n]
		}
		o.left++
		p.issue(q, b[:n])
		b, off = b[n:], off+uint64(n)
	}
}

// issue starts a part, or has it wait. b is what a write has to say. Locked.
func (p *Pool) issue(q *part, b []byte) {
	if len(p.granted) == 0 && !p.conflicts(q.op.mem, q.off, q.n, q.changes()) {
		if q.kind == writes {
			q.data = b
		}
		if p.place(q) {
			switch q.kind {
			case writes:
				q.data = nil // the caller's
			case swaps:
				p.active = append(p.active, q)
				p.stats.Atomics++
			case reads:
			}
			return
		}
	}
	p.stats.Waited++
	if q.kind == writes {
		q.data = append([]byte(nil), b...)
		p.spilled += q.n
		p.stats.SpilledMax = max(p.stats.SpilledMax, p.spilled)
	}
	p.waiting = append(p.waiting, q)
}

// Atomic changes one word, see the package comment.
func (m *Memory) Atomic(op *device.AtomicOp, token uint64, c device.Completer) (bool, error) {
	if err := device.CheckAtomic(m.block.Size, m.Address(), op); err != nil {
		return true, err
	}
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := m.usable(); err != nil {
		return true, err
	}
	q := p.getPart()
	q.kind, q.off, q.n, q.atomic = swaps, op.Off, device.WordSize, op
	if m.view != nil && !p.conflicts(m, op.Off, device.WordSize, true) {
		m.view.Read(op.Off, q.word[:])
		if p.compute(q) {
			m.view.Write(op.Off, q.word[:])
			m.view.Fence(op.Off)
		}
		p.stats.MappedAtomics++
		p.putPart(q)
		return true, nil
	}
	q.op = p.getOp(m, token, c)
	q.op.left = 1
	q.data = q.word[:]
	p.issue(q, nil)
	p.wake.Signal()
	return false, nil
}
