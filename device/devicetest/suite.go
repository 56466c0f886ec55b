package devicetest

import (
	"errors"
	"testing"

	"github.com/gohixl/hixl/device"
)

// MinSize is the least Size of a memory that Run takes.
const MinSize = 4096

// Maker makes a fresh memory of at least MinSize bytes for one check and
// arranges for its end by t.Cleanup. Its first byte must be 8-byte aligned, and
// it must not fail by itself.
type Maker func(t *testing.T) device.Memory

// check is one part of the suite; the error says what the memory does wrong.
type check struct {
	name string
	run  func(m device.Memory) error
}

var checks = []check{
	{"Size", checkSize},
	{"RoundTrip", checkRoundTrip},
	{"Vectors", checkVectors},
	{"Staging", checkStaging},
	{"Range", checkRange},
	{"Order", checkOrder},
}

var atomicChecks = []check{
	{"Atomic", checkAtomic},
	{"AtomicRefusals", checkAtomicRefusals},
	{"AtomicOrder", checkAtomicOrder},
	{"AtomicContention", checkContention},
}

// Run checks every promise of package device on memories from maker: sizes and
// the direct view, vectored copies, staging of what the caller keeps, refusals,
// the order of overlapping operations, completion exactly once and never from
// inside a call, and atomics unless the memory answers ErrNoAtomic. A memory
// that is a Stepper is driven by Step, any other must drive itself.
func Run(t *testing.T, maker Maker) {
	t.Helper()
	run := func(c check) {
		t.Run(c.name, func(t *testing.T) {
			m := maker(t)
			if m.Size() < MinSize {
				t.Fatalf("the maker's memory has %d bytes, the suite needs %d", m.Size(), MinSize)
			}
			if err := c.run(m); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range checks {
		run(c)
	}
	if noAtomics(maker(t)) {
		t.Log("the memory has no atomics: their checks are left out")
		return
	}
	for _, c := range atomicChecks {
		run(c)
	}
}

// noAtomics asks for an atomic that nobody executes.
func noAtomics(m device.Memory) bool {
	_, err := m.Atomic(&device.AtomicOp{}, 0, nil)
	return errors.Is(err, device.ErrNoAtomic)
}
