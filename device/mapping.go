package device

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// Mapping is a block's view in host address space. Unless Cached, its bytes must
// only be moved by the methods here: a mapping over a bus takes aligned accesses
// alone on some processors, where Go's own copy uses others, and loads from it are
// slow. The methods check no bounds beyond Go's own.
type Mapping struct {
	Block Block
	// B is the view; its first byte is at a multiple of 8.
	B []byte
	// Cached is true for ordinary memory.
	Cached bool
}

// Write copies b to offset off.
func (m *Mapping) Write(off uint64, b []byte) {
	to := m.B[off : off+uint64(len(b))]
	if m.Cached {
		copy(to, b)
		return
	}
	n := headOf(to)
	for i := range n {
		to[i] = b[i]
	}
	for ; len(b)-n >= WordSize; n += WordSize {
		atomic.StoreUint64(wordAt(to, n), binary.NativeEndian.Uint64(b[n:]))
	}
	for ; n < len(b); n++ {
		to[n] = b[n]
	}
}

// Read copies from offset off to b.
func (m *Mapping) Read(off uint64, b []byte) {
	from := m.B[off : off+uint64(len(b))]
	if m.Cached {
		copy(b, from)
		return
	}
	n := headOf(from)
	for i := range n {
		b[i] = from[i]
	}
	for ; len(b)-n >= WordSize; n += WordSize {
		binary.NativeEndian.PutUint64(b[n:], atomic.LoadUint64(wordAt(from, n)))
	}
	for ; n < len(b); n++ {
		b[n] = from[n]
	}
}

// Fence returns when everything written before is in the device's memory: it loads
// the word around the byte at off, and a load over a bus pushes the stores before
// it ahead.
func (m *Mapping) Fence(off uint64) {
	off &^= WordSize - 1
	if off+WordSize <= uint64(len(m.B)) {
		atomic.LoadUint64(wordAt(m.B, int(off)))
	}
}

// headOf is how many bytes lie before the first aligned word, len(b) at the most.
func headOf(b []byte) int {
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return min(int(-p&(WordSize-1)), len(b))
}

func wordAt(b []byte, i int) *uint64 { return (*uint64)(unsafe.Pointer(&b[i])) }
