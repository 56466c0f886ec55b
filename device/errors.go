package device

import (
	"errors"
	"fmt"
)

// Sentinels to test for with errors.Is.
var (
	// ErrRange: an offset or length reaches beyond the memory.
	ErrRange = errors.New("device: beyond the memory's end")
	// ErrAlign: the word of an atomic is not 8-byte aligned.
	ErrAlign = errors.New("device: word not 8-byte aligned")
	// ErrKind: the kind of an atomic is not one of the known ones.
	ErrKind = errors.New("device: unknown atomic operation")
	// ErrNoAtomic: the backend executes no atomics; use package atomic, which
	// emulates them.
	ErrNoAtomic = errors.New("device: memory has no atomics of its own")
	// ErrClosed: the memory was freed.
	ErrClosed = errors.New("device: memory is closed")
	// ErrBusy: the memory cannot be freed while regions are registered over it.
	ErrBusy = errors.New("device: memory is in use")
	// ErrSize: a size that cannot be allocated.
	ErrSize = errors.New("device: size cannot be allocated")
)

// RangeError tells which bytes were asked for of how many. It unwraps to
// ErrRange.
type RangeError struct {
	Off, Len uint64 // what was asked for
	Size     uint64 // what there is
}

// Error says what was given and what is allowed.
func (e *RangeError) Error() string {
	return fmt.Sprintf("device: %d bytes at offset %d reach beyond a memory of %d bytes", e.Len, e.Off, e.Size)
}

// Unwrap returns ErrRange.
func (e *RangeError) Unwrap() error { return ErrRange }

// AlignError tells which word was misaligned. It unwraps to ErrAlign.
type AlignError struct {
	Off  uint64 // offset of the word
	Addr uint64 // its address
}

// Error says what was given and what to do.
func (e *AlignError) Error() string {
	return fmt.Sprintf("device: word at offset %d has address %#x, which is not a multiple of %d; "+
		"place the memory and the word on an %d-byte boundary", e.Off, e.Addr, WordSize, WordSize)
}

// Unwrap returns ErrAlign.
func (e *AlignError) Unwrap() error { return ErrAlign }

// KindError tells which kind was given. It unwraps to ErrKind.
type KindError struct{ Kind Kind }

// Error says what was given and what is allowed.
func (e *KindError) Error() string {
	return fmt.Sprintf("device: atomic %v is unknown; use CompareSwap, FetchAdd or Store", e.Kind)
}

// Unwrap returns ErrKind.
func (e *KindError) Unwrap() error { return ErrKind }
