package device

import "unsafe"

// Completer learns that an operation that a Memory could not finish at once has
// finished. MemoryDone is called exactly once for each such operation, with the
// token given at its start, from any goroutine but never from inside the call
// that started it; on another goroutine it may come before that call has
// returned. It must not block: it runs on the device's own goroutine. It may
// start further operations on the memory.
type Completer interface {
	MemoryDone(token uint64, err error)
}

// Vec is one piece of a vectored read or write: len(B) bytes of the memory
// from byte Off on. An empty B is legal and moves nothing; its Off must still
// not lie beyond the end.
type Vec struct {
	Off uint64
	B   []byte
}

// Memory is a span of bytes somewhere. See the package comment for ordering,
// ownership and completion, which bind every implementation; devicetest.Run
// checks them.
//
// Implementations are pointers (a Memory must be comparable: package atomic
// keys its exclusion by it).
//
// A NIC calls WriteV and Atomic with a queue pair's lock held, so that operations
// reach the memory in the order of their packets: they must not wait for other
// work and must not call the NIC.
type Memory interface {
	// Size is the length in bytes. It never changes.
	Size() uint64

	// Bytes is the direct view of all Size bytes, or nil when the CPU cannot
	// address them. It returns the same slice every time.
	Bytes() []byte

	// WriteV copies every v[i].B to its offset, in the order of v where the
	// pieces overlap. Errors: *RangeError, ErrClosed, the backend's own.
	// The caller keeps v and the bytes: both may be reused on return.
	WriteV(v []Vec, token uint64, c Completer) (done bool, err error)

	// ReadV copies from every offset to v[i].B. The buffers belong to the
	// memory until done; v itself may be reused on return.
	ReadV(v []Vec, token uint64, c Completer) (done bool, err error)

	// Atomic executes op on one aligned 64-bit word, indivisibly against all
	// other Atomic calls on this memory and, on host memory, against the CPU's
	// own sync/atomic use. op belongs to the memory until done. Errors:
	// *RangeError, *AlignError, *KindError, ErrClosed, ErrNoAtomic from a
	// backend that has none (package atomic then emulates them).
	Atomic(op *AtomicOp, token uint64, c Completer) (done bool, err error)
}

// Addresser is implemented by memories that know their address, such as an
// accelerator's. Only the low bits matter to others, for alignment.
type Addresser interface {
	// Address is where byte 0 lies, in the device's own address space.
	Address() uint64
}

// Retainer is implemented by memories that can be freed. A region retains its
// memory from registration until the last of its bytes was moved, so that
// freeing it meanwhile fails instead of pulling the bytes from under a copy. A Driver
// may implement it, too: then its Close fails while somebody retains it.
type Retainer interface {
	// Retain counts one more user; it fails with ErrClosed once freed.
	Retain() error
	// Release ends one successful Retain.
	Release()
}

// Congester is implemented by memories that stage what is written to them and can
// fall behind. While Congested, a NIC takes no packets with bytes for the memory's
// queue pairs, as if the network had lost them, so that what is staged stays bounded
// and the peer slows down. It is called for each such packet.
type Congester interface {
	Congested() bool
}

// AddressOf tells where byte 0 of m lies: by Addresser, else by its direct
// view, else 0. It is meant for alignment and congruence, not for access.
func AddressOf(m Memory) uint64 {
	if a, ok := m.(Addresser); ok {
		return a.Address()
	}
	b := m.Bytes()
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
