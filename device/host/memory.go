package host

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/pages"
)

// Memory is host memory. It implements device.Memory, Addresser and Retainer.
// Make one with New or Alloc.
type Memory struct {
	b      []byte
	unmap  func() error // nil when the bytes are the caller's
	closed atomic.Bool  // set under mu, read without

	mu    sync.Mutex
	users int // guarded by mu
}

var (
	_ device.Memory    = (*Memory)(nil)
	_ device.Addresser = (*Memory)(nil)
	_ device.Retainer  = (*Memory)(nil)
)

// New makes a Memory of b, which stays the caller's: it must not be freed or
// unmapped by other means before Close. An empty b is a legal empty memory.
// Slices from the Go heap are fine, the collector does not move them.
func New(b []byte) *Memory {
	return &Memory{b: b[:len(b):len(b)]}
}

// Alloc maps size bytes of zeroed memory, page-aligned and outside the Go heap,
// which Close gives back. size is 1 to what the system has; else the error
// unwraps to device.ErrSize or to the system's.
func Alloc(size int) (*Memory, error) {
	if size < 1 {
		return nil, fmt.Errorf("host: cannot allocate %d bytes, give 1 or more: %w", size, device.ErrSize)
	}
	b, unmap, err := pages.Map(size)
	if err != nil {
		return nil, fmt.Errorf("host: mapping %d bytes of memory: %w", size, err)
	}
	return &Memory{b: b, unmap: unmap}, nil
}

// Close gives the pages of Alloc back; afterwards nobody may touch the slice
// that Bytes returned. It fails with an error that unwraps to device.ErrBusy
// while a region is registered over the memory. Closing twice is fine.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed.Load():
		return nil
	case m.users > 0:
		return fmt.Errorf("host: %d regions are registered over this memory, deregister them first: %w",
			m.users, device.ErrBusy)
	}
	m.closed.Store(true)
	if m.unmap == nil {
		return nil
	}
	return m.unmap()
}

// Retain counts a region; Close is refused until its Release.
func (m *Memory) Retain() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return device.ErrClosed
	}
	m.users++
	return nil
}

// Release ends one Retain. It panics when there was none.
func (m *Memory) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		panic("host: Release without Retain")
	}
	m.users--
}

// Size is the number of bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.b)) }

// Bytes is the memory itself.
func (m *Memory) Bytes() []byte { return m.b }

// Address is the virtual address of byte 0.
func (m *Memory) Address() uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.b))))
}

// WriteV copies into the memory, done on return.
func (m *Memory) WriteV(v []device.Vec, _ uint64, _ device.Completer) (bool, error) {
	if err := m.check(v); err != nil {
		return true, err
	}
	for i := range v {
		copy(m.b[v[i].Off:], v[i].B)
	}
	return true, nil
}

// ReadV copies out of the memory, done on return.
func (m *Memory) ReadV(v []device.Vec, _ uint64, _ device.Completer) (bool, error) {
	if err := m.check(v); err != nil {
		return true, err
	}
	for i := range v {
		copy(v[i].B, m.b[v[i].Off:])
	}
	return true, nil
}

func (m *Memory) check(v []device.Vec) error {
	if m.closed.Load() {
		return device.ErrClosed
	}
	return device.CheckVec(uint64(len(m.b)), v)
}

// Atomic executes op with sync/atomic on the word itself, done on return.
func (m *Memory) Atomic(op *device.AtomicOp, _ uint64, _ device.Completer) (bool, error) {
	if m.closed.Load() {
		return true, device.ErrClosed
	}
	if err := device.CheckAtomic(uint64(len(m.b)), m.Address(), op); err != nil {
		return true, err
	}
	word := (*uint64)(unsafe.Pointer(&m.b[op.Off])) // in range and aligned: checked
	switch op.Kind {
	case device.CompareSwap:
		op.Result = compareSwap(word, op.Compare, op.Operand)
	case device.FetchAdd:
		op.Result = atomic.AddUint64(word, op.Operand) - op.Operand
	case device.Store:
		atomic.StoreUint64(word, op.Operand)
	}
	return true, nil
}

// compareSwap returns the value found, which sync/atomic does not tell. The loop
// ends: it goes round only when another writer changed the word in between to
// compare again.
func compareSwap(word *uint64, compare, swap uint64) uint64 {
	for {
		if old := atomic.LoadUint64(word); old != compare {
			return old
		}
		if atomic.CompareAndSwapUint64(word, compare, swap) {
			return compare
		}
	}
}
