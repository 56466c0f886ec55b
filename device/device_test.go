package device_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
)

func TestContains(t *testing.T) {
	for _, c := range []struct {
		size, off, n uint64
		want         bool
	}{
		{0, 0, 0, true},
		{0, 0, 1, false},
		{0, 1, 0, false},
		{10, 10, 0, true},
		{10, 3, 7, true},
		{10, 3, 8, false},
		{10, math.MaxUint64, 2, false},
		{math.MaxUint64, math.MaxUint64, 0, true},
		{math.MaxUint64, 1, math.MaxUint64, false},
	} {
		require.Equal(t, c.want, device.Contains(c.size, c.off, c.n), "%+v", c)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	vec := device.CheckVec(10, []device.Vec{{Off: 0, B: make([]byte, 10)}, {Off: 8, B: make([]byte, 3)}})
	require.ErrorIs(t, vec, device.ErrRange)
	require.EqualError(t, vec, "device: 3 bytes at offset 8 reach beyond a memory of 10 bytes")

	align := device.CheckAtomic(64, 0x1003, &device.AtomicOp{Kind: device.Store, Off: 8})
	require.ErrorIs(t, align, device.ErrAlign)
	require.ErrorContains(t, align, "0x100b")

	kind := device.CheckAtomic(64, 0, &device.AtomicOp{Kind: 9})
	require.ErrorIs(t, kind, device.ErrKind)
	require.ErrorContains(t, kind, "kind 9 is unknown; use CompareSwap, FetchAdd or Store")
}

func TestAddressOf(t *testing.T) {
	require.Zero(t, device.AddressOf(devicetest.NewLate(devicetest.LateConfig{Size: 8})), "no view, no address")
	require.EqualValues(t, 0x12345, device.AddressOf(placed{addr: 0x12345}))
}

// placed has an address and no view.
type placed struct {
	*devicetest.Late
	addr uint64
}

func (p placed) Address() uint64 { return p.addr }

// The blocking helpers wait for memories that finish later.
func TestBlockingHelpersWait(t *testing.T) {
	l := devicetest.NewLate(devicetest.LateConfig{Size: 64, Seed: 1})
	finished := make(chan error)
	drive := func() error {
		for {
			select {
			case err := <-finished:
				return err
			default:
				l.Drain()
			}
		}
	}
	go func() { finished <- device.WriteAt(l, []byte("late"), 3) }()
	require.NoError(t, drive())
	got := make([]byte, 4)
	go func() { finished <- device.ReadAt(l, got, 3) }()
	require.NoError(t, drive())
	require.Equal(t, "late", string(got))
	require.ErrorIs(t, device.ReadAt(l, got, 61), device.ErrRange)
}

func TestApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, x := rapid.Uint64().Draw(t, "old"), rapid.Uint64().Draw(t, "operand")
		for _, c := range []struct {
			op    device.AtomicOp
			value uint64
			store bool
		}{
			{device.AtomicOp{Kind: device.CompareSwap, Compare: old, Operand: x}, x, true},
			{device.AtomicOp{Kind: device.CompareSwap, Compare: ^old, Operand: x}, x, false},
			{device.AtomicOp{Kind: device.FetchAdd, Operand: x}, old + x, true},
			{device.AtomicOp{Kind: device.Store, Operand: x}, x, true},
			{device.AtomicOp{Operand: x}, old, false},
		} {
			value, store := c.op.Apply(old)
			require.Equal(t, c.store, store)
			if store {
				require.Equal(t, c.value, value)
			}
		}
	})
}

func TestDriverErrorsSayEverything(t *testing.T) {
	err := error(&device.DriverError{
		Device: "ascend:1", Call: "aclrtMalloc", What: "64 bytes", Code: 207018, Name: "ACL_ERROR_RT_DEVICE_OOM",
		Message: "no memory\n  left ", Class: device.ErrNoMemory, Advice: "free some",
	})
	require.ErrorIs(t, err, device.ErrNoMemory)
	require.EqualError(t, err, `device ascend:1: 64 bytes: aclrtMalloc: ACL_ERROR_RT_DEVICE_OOM (207018): "no memory left"; free some`)
	require.ErrorIs(t, &device.DriverError{}, device.ErrFailed, "of no class")

	missing := &device.NotAvailableError{Symbol: "aclrtValueWait", Library: "/x/libascendcl.so", Version: "1.2.3"}
	require.ErrorIs(t, missing, device.ErrUnsupported)
	require.ErrorContains(t, missing, "not available: aclrtValueWait in /x/libascendcl.so, version 1.2.3")

	require.ErrorIs(t, device.CheckCopy(&device.Copy{Dir: 9}), device.ErrArgument)
	require.ErrorIs(t, device.CheckCopy(&device.Copy{Dir: device.In, Len: 4}), device.ErrArgument)
	require.NoError(t, device.CheckCopy(&device.Copy{Dir: device.Out}))
	require.ErrorIs(t, device.CheckWord(12), device.ErrAlign)
}

// A mapping that must not be touched as ordinary memory behaves the same.
func TestMapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &device.Mapping{B: make([]byte, 128), Cached: rapid.Bool().Draw(t, "cached")}
		want := make([]byte, 128)
		off := rapid.Uint64Range(0, 64).Draw(t, "off")
		b := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "bytes")
		copy(want[off:], b)
		m.Write(off, b)
		m.Fence(off)
		require.Equal(t, want, m.B)
		got := make([]byte, len(b))
		m.Read(off, got)
		require.Equal(t, b, got)
	})
	require.Panics(t, func() { (&device.Mapping{B: make([]byte, 8)}).Write(4, make([]byte, 5)) })
}

func TestConditions(t *testing.T) {
	require.True(t, device.AtLeast.Holds(3, math.MaxUint64), "the difference is signed")
	require.False(t, device.AtLeast.Holds(math.MaxUint64, 3))
	require.True(t, device.NotBoth.Holds(0, 1))
	require.False(t, device.NotBoth.Holds(math.MaxUint64-1, 1))
	require.False(t, device.Condition(9).Holds(1, 1))
}
