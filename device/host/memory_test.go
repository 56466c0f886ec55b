package host_test

import (
	"encoding/binary"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
)

func alloc(tb testing.TB, size int) *host.Memory {
	tb.Helper()
	m, err := host.Alloc(size)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, m.Close()) })
	return m
}

func TestConforms(t *testing.T) {
	t.Run("mapped", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Memory { return alloc(t, 3*devicetest.MinSize) })
	})
	t.Run("slice", func(t *testing.T) {
		devicetest.Run(t, func(*testing.T) device.Memory { return host.New(make([]byte, devicetest.MinSize+5)) })
	})
}

func TestAlloc(t *testing.T) {
	m := alloc(t, 5000)
	require.EqualValues(t, 5000, m.Size())
	require.Equal(t, make([]byte, 5000), m.Bytes())
	require.Zero(t, m.Address()%uint64(os.Getpagesize()))
	require.Equal(t, m.Address(), device.AddressOf(m))

	for _, size := range []int{0, -1, math.MinInt} {
		_, err := host.Alloc(size)
		require.ErrorIs(t, err, device.ErrSize)
		require.ErrorContains(t, err, "give 1 or more")
	}
	_, err := host.Alloc(math.MaxInt - 1<<20)
	require.Error(t, err, "more than any machine has")
}

func TestNewKeepsTheCallersSlice(t *testing.T) {
	b := make([]byte, 10, 20)
	m := host.New(b)
	require.NoError(t, device.WriteAt(m, []byte("hello"), 5))
	require.Equal(t, "hello", string(b[5:]))
	require.Equal(t, 10, cap(m.Bytes()), "nothing beyond the slice is reachable")

	empty := host.New(nil)
	require.Zero(t, empty.Size())
	require.NoError(t, device.WriteAt(empty, nil, 0))
	require.ErrorIs(t, device.WriteAt(empty, []byte{1}, 0), device.ErrRange)
}

func TestCloseRefusesWhatFollows(t *testing.T) {
	m, err := host.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, m.Retain())
	require.ErrorIs(t, m.Close(), device.ErrBusy)
	require.NoError(t, device.WriteAt(m, []byte{1}, 0), "a refused Close changes nothing")
	m.Release()
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "closing twice is fine")

	require.ErrorIs(t, device.WriteAt(m, []byte{1}, 0), device.ErrClosed)
	require.ErrorIs(t, device.ReadAt(m, make([]byte, 1), 0), device.ErrClosed)
	_, err = m.Atomic(&device.AtomicOp{Kind: device.FetchAdd}, 0, nil)
	require.ErrorIs(t, err, device.ErrClosed)
	require.ErrorIs(t, m.Retain(), device.ErrClosed)
	require.PanicsWithValue(t, "host: Release without Retain", m.Release)
}

// The real address decides about alignment, not the offset.
func TestAtomicOfMisalignedMemory(t *testing.T) {
	whole := alloc(t, 64)
	m := host.New(whole.Bytes()[3:])
	for off := range uint64(16) {
		op := device.AtomicOp{Kind: device.FetchAdd, Off: off, Operand: 1}
		done, err := m.Atomic(&op, 0, nil)
		require.True(t, done)
		if (off+3)%8 == 0 {
			require.NoError(t, err)
			continue
		}
		var misaligned *device.AlignError
		require.ErrorAs(t, err, &misaligned)
		require.Equal(t, off, misaligned.Off)
		require.Equal(t, m.Address()+off, misaligned.Addr)
	}
	require.EqualValues(t, 1, binary.NativeEndian.Uint64(whole.Bytes()[8:]))
}

// ATOMIC WRITE stores the payload's bytes as they came (§6.1).
func TestStoreKeepsByteOrder(t *testing.T) {
	m := host.New(make([]byte, 16))
	payload := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	op := device.AtomicOp{Kind: device.Store, Off: 8, Operand: binary.NativeEndian.Uint64(payload)}
	_, err := m.Atomic(&op, 0, nil)
	require.NoError(t, err)
	require.Equal(t, payload, m.Bytes()[8:])
}

// Remote atomics and the CPU's own sync/atomic on one word exclude each other.
func TestAtomicAgainstLocalSyncAtomic(t *testing.T) {
	const (
		workers = 3
		rounds  = 2000
	)
	m := host.New(make([]byte, 4096)) // heap: the race detector sees no mapped memory
	counter := (*uint64)(unsafe.Pointer(&m.Bytes()[0]))
	lock := (*uint64)(unsafe.Pointer(&m.Bytes()[64]))
	plain := 0 // guarded by lock

	remote := func(op device.AtomicOp) uint64 {
		done, err := m.Atomic(&op, 0, nil)
		if !done || err != nil {
			panic("host atomics are done at once")
		}
		return op.Result
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { // the peer
			for range rounds {
				remote(device.AtomicOp{Kind: device.FetchAdd, Operand: 1})
				for remote(device.AtomicOp{Kind: device.CompareSwap, Off: 64, Operand: 1}) != 0 {
				}
				plain++
				remote(device.AtomicOp{Kind: device.Store, Off: 64})
			}
		})
		wg.Go(func() { // local code
			for range rounds {
				atomic.AddUint64(counter, 1)
				for !atomic.CompareAndSwapUint64(lock, 0, 2) {
				}
				plain++
				atomic.StoreUint64(lock, 0)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 2*workers*rounds, atomic.LoadUint64(counter))
	require.Equal(t, 2*workers*rounds, plain)
}

func TestNothingIsAllocated(t *testing.T) {
	var m device.Memory = host.New(make([]byte, 4096))
	v := []device.Vec{{Off: 0, B: make([]byte, 1024)}, {Off: 2048, B: make([]byte, 1024)}}
	op := &device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = m.WriteV(v, 0, nil)
		_, _ = m.ReadV(v, 0, nil)
		_, _ = m.Atomic(op, 0, nil)
	}))
}

func BenchmarkWriteV(b *testing.B) {
	var m device.Memory = alloc(b, 1<<20)
	v := []device.Vec{{Off: 4096, B: make([]byte, 4096)}}
	b.ReportAllocs()
	b.SetBytes(4096)
	for b.Loop() {
		_, _ = m.WriteV(v, 0, nil)
	}
}

func BenchmarkFetchAdd(b *testing.B) {
	var m device.Memory = alloc(b, 4096)
	op := &device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.Atomic(op, 0, nil)
	}
}
