package device

import "strconv"

// Kind says what an AtomicOp does.
type Kind uint8

// The kinds. The zero Kind is none of them, so that a forgotten field is
// refused.
const (
	// CompareSwap stores Operand if the word equals Compare.
	CompareSwap Kind = 1 + iota
	// FetchAdd adds Operand modulo 2^64.
	FetchAdd
	// Store replaces the word by Operand in one 64-bit store.
	Store
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case CompareSwap:
		return "compare-and-swap"
	case FetchAdd:
		return "fetch-and-add"
	case Store:
		return "store"
	default:
		return "kind " + strconv.Itoa(int(k))
	}
}

// WordSize is the size and alignment in bytes of the word that atomics act on.
const WordSize = 8

// AtomicOp is one operation on a 64-bit word. The word is a number in the
// host's byte order: what a local *uint64 at that place would show.
//
// Operand of a Store is the eight payload bytes read in the host's own order
// (binary.NativeEndian.Uint64), so that they land as they came: ATOMIC WRITE
// carries raw bytes, not a number (§6.1).
type AtomicOp struct {
	Kind Kind
	// Off is the word's place. The address of the word, that is the memory's
	// own address plus Off, must be a multiple of 8.
	Off uint64
	// Operand is the swap value, the addend or the value to store.
	Operand uint64
	// Compare is what CompareSwap expects to find.
	Compare uint64
	// Result is set before completion to the word's value before the
	// operation. Store leaves it alone.
	Result uint64
}

// Apply computes what the operation makes of a word that holds old: the new
// value and whether it has to be stored. It is the definition of the kinds, for
// emulations and models; an unknown kind stores nothing.
func (op *AtomicOp) Apply(old uint64) (value uint64, store bool) {
	switch op.Kind {
	case CompareSwap:
		return op.Operand, old == op.Compare
	case FetchAdd:
		return old + op.Operand, true
	case Store:
		return op.Operand, true
	default:
		return old, false
	}
}
