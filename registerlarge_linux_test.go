package hixl_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// vast is memory that is there only where it is touched.
func vast(t testing.TB) []byte {
	b, err := unix.Mmap(-1, 0, 4<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return b
}

func simPD(t testing.TB) *hixl.PD {
	net := sim.New(sim.Config{})
	conn, err := net.Host(simAddr(1))
	require.NoError(t, err)
	nic, err := hixl.OpenNIC(hixl.Config{Transport: conn, Clock: net.Now, Stepped: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nic.Close()) })
	return nic.AllocPD()
}

// resident is how many of the pages of b are in memory.
func resident(t testing.TB, b []byte) (n int) {
	in := make([]byte, len(b)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&in[0])))
	require.Zero(t, errno)
	for _, x := range in {
		n += int(x & 1)
	}
	return n
}

// Four gigabytes are registered with little bookkeeping, and no page of them is
// touched.
func TestRegisterLarge(t *testing.T) {
	b := vast(t)
	pd := simPD(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := pd.Register(b, everything)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "bytes of bookkeeping")
	require.EqualValues(t, 4<<30, r.Len())
	require.Zero(t, resident(t, b))
	require.NoError(t, r.Deregister(t.Context()))
}

// What it takes to register four gigabytes.
func BenchmarkRegisterLarge(b *testing.B) {
	mem := vast(b)
	pd := simPD(b)
	for b.Loop() {
		r, err := pd.Register(mem, everything)
		require.NoError(b, err)
		require.NoError(b, r.Deregister(b.Context()))
	}
}
