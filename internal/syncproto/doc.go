// Package syncproto is the protocols of package dsync as values: machines that say
// which one-sided operation is next and are told what became of it. One operation
// is one step; between two steps anything may happen to the memory. Time is an
// argument. A machine holds no pointer and can be compared, so that a test can walk
// through all interleavings of a few of them. The protocols and the arguments for
// them are told in the documentation of package dsync.
package syncproto

import "github.com/gohixl/hixl/internal/mono"

// Kind is what an operation does.
type Kind uint8

// The kinds.
const (
	// None: the machine has come to an end, or rests.
	None Kind = iota
	// Pause: nothing before At.
	Pause
	// Load takes a word.
	Load
	// CompareSwap puts Operand in the place of Compare and takes what was there.
	CompareSwap
	// Read brings Len bytes at Off to Buf in local memory, a word at a time; Write is
	// the reverse. What else happens may fall between two words.
	Read
	Write
)

// Op is one operation on the memory that the machines share.
type Op struct {
	Kind             Kind
	Off              uint64 // of the word, in bytes from the beginning of the object
	Compare, Operand uint64
	Len, Buf         uint64    // of Read and Write, in bytes
	Scan             bool      // of a Read: Least is wanted
	At               mono.Time // of a Pause
}

// Result is what an operation has brought.
type Result struct {
	Word  uint64 // as it was before; of a Read, the first
	Least uint64 // of a Read with Scan: the least word after the first
}

// Machine is a protocol at work.
type Machine interface {
	// Next says what to do now and begins it. After a Pause it is asked again, at
	// that time or later.
	Next(now mono.Time) Op
	// Done tells that the operation of the last Next has taken effect.
	Done(now mono.Time, r Result)
	// Unknown tells that it may have taken effect, may not have, or may yet.
	Unknown(now mono.Time)
}
