package bench

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyAllocation makes allocations see each of them, for the rest of a test.
func everyAllocation(t *testing.T) {
	t.Helper()
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = rate })
}

// notCounted allocate as time passes, however many messages come: a NIC at rest,
// on a loaded machine the more often, and the counting itself.
var notCounted = []string{"/internal/nic.(*NIC).rest", "/bench.allocations"}

// allocations returns the objects allocated so far, by whichever goroutine, but
// for those of notCounted.
func allocations() (objects int64) {
	runtime.GC() // the profile is that of the last collection but one
	runtime.GC()
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, n+50)
		n, ok = runtime.MemProfile(records, true)
		records = records[:min(n, len(records))]
	}
	for i := range records {
		if counted(records[i].Stack()) {
			objects += records[i].AllocObjects
		}
	}
	return objects
}

// counted reports whether no function of a stack is one of notCounted.
func counted(stack []uintptr) bool {
	for frames, more := runtime.CallersFrames(stack), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if slices.ContainsFunc(notCounted, func(s string) bool { return strings.HasSuffix(f.Function, s) }) {
			return false
		}
	}
	return true
}

// kept keeps what the test below allocates from going to the stack.
var kept []*[32]byte

func TestAllocationsAreCounted(t *testing.T) {
	everyAllocation(t)
	const n = 1000
	kept = make([]*[32]byte, n)
	before := allocations()
	for i := range kept {
		kept[i] = new([32]byte)
	}
	got := allocations() - before
	kept = nil
	require.GreaterOrEqual(t, got, int64(n))
	require.Less(t, got, int64(2*n))
}
