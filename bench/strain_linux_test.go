package bench

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStrainSeesFaults touches memory for the first time, a page at a time.
func TestStrainSeesFaults(t *testing.T) {
	const pages = 64
	size := pages * syscall.Getpagesize()
	before := processStrain()
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	for i := 0; i < size; i += size / pages {
		mem[i] = 1
	}
	met := processStrain().since(before)
	require.NoError(t, syscall.Munmap(mem))
	require.GreaterOrEqual(t, met.MinorFaults, uint64(pages))
	require.Positive(t, processWaited(), "some thread has waited once")
	require.Equal(t, Strain{MinorFaults: 2, Waited: 6}, Strain{MinorFaults: 3, Waited: 8}.since(Strain{MinorFaults: 1, Waited: 2}))
	require.Equal(t, Strain{MinorFaults: 4, Waited: 10}, Strain{MinorFaults: 3, Waited: 8}.add(Strain{MinorFaults: 1, Waited: 2}))
}
