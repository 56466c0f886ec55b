package wr

import (
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// WorkKind says what a [Work] asks for.
type WorkKind uint8

// What an accepted packet may ask the caller to do.
const (
	// WorkNone asks for nothing.
	WorkNone WorkKind = iota
	// WorkPlace copies Data into Spans, in order.
	WorkPlace
	// WorkAtomic does the 64-bit operation Op on the word at Spans[0]; its
	// original value goes to Commit.
	WorkAtomic
)

// Work is what an accepted packet asks the caller to do with memory. The caller
// does it in the order in which it got it and reports with the engine's Commit.
type Work struct {
	Kind  WorkKind
	Token uint64
	// Spans and Data are valid until the next call of a method of the engine.
	Spans []mr.Span
	Data  []byte
	// Op is CmpSwap, FetchAdd or AtomicWrite; Operand is the value to swap in,
	// add or store (for AtomicWrite the 8 payload bytes in the host's order: they
	// go to memory as they came, §6.1).
	Op               roce.Opcode
	Operand, Compare uint64
}

// Outcome tells the engine how a placement, an atomic or a fetch ended.
type Outcome uint8

// Outcomes.
const (
	// Done: the bytes are in place, or have been read.
	Done Outcome = iota
	// Revoked: the region was deregistered or invalidated in between.
	Revoked
	// Failed: the memory reported an error.
	Failed
)
