package crc

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostKernels are the kernels this processor runs, the slowest first; there is
// one for each name in kernelNames. A processor that has one has those before.
func hostKernels() []kernel {
	var all []kernel
	for k := kernelGo; k <= best; k++ {
		all = append(all, k)
	}
	return all
}

// eachKernel runs a test against every kernel there is in this build.
func eachKernel(t *testing.T, run func(t *testing.T, k kernel)) {
	for i, name := range kernelNames {
		t.Run(name, func(t *testing.T) {
			if kernel(i) > best {
				t.Skipf("the processor lacks the instructions of kernel %s, or GODEBUG took them away", name)
			}
			run(t, kernel(i))
		})
	}
}

// over and copyOver are what update and Copy do when best is k.
func (k kernel) over(crc uint32, p []byte) uint32 {
	if k == kernelGo {
		return slicingUpdate(crc, p)
	}
	return k.update(crc, p)
}

func (k kernel) copyOver(dst, src []byte, crc uint32) uint32 {
	if k == kernelGo {
		return copyCRCGo(dst, src, crc)
	}
	return k.copyCRC(dst, src, crc)
}

func oracle(crc uint32, p []byte) uint32 { return crc32.Update(crc, crc32.IEEETable, p) }

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

const canary = 0xA5

func fillCanary(b []byte) {
	for i := range b {
		b[i] = canary
	}
}

// requireCopy checks one copy into dst at off, and that nothing around it
// changed. dst is full of canaries before and after.
func requireCopy(t *testing.T, k kernel, dst []byte, off int, src []byte, crc uint32) {
	t.Helper()
	n := len(src)
	got := k.copyOver(dst[off:off+n], src, crc)
	if want := oracle(crc, src); got != want {
		t.Fatalf("%d bytes to offset %d: CRC %#08x, want %#08x", n, off, got, want)
	}
	if string(dst[off:off+n]) != string(src) {
		t.Fatalf("%d bytes to offset %d: the copy differs", n, off)
	}
	fillCanary(dst[off : off+n])
	around := dst[max(0, off-80):min(len(dst), off+n+80)]
	for i, v := range around {
		if v != canary {
			t.Fatalf("%d bytes to offset %d: wrote byte %d", n, off, max(0, off-80)+i)
		}
	}
}

// Every length, and with it every alignment of the source and of the
// destination; over the lengths, every pair of them.
func TestKernelLengths(t *testing.T) {
	eachKernel(t, func(t *testing.T, k kernel) {
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		src, dst := randomBytes(rng, 1100+64), make([]byte, 1100+3*80)
		fillCanary(dst)
		for n := 0; n <= 1100; n++ {
			for align := range 64 {
				p, crc := src[align:align+n], rng.Uint32()
				if got, want := k.over(crc, p), oracle(crc, p); got != want {
					t.Fatalf("%d bytes at %d: CRC %#08x, want %#08x", n, align, got, want)
				}
				requireCopy(t, k, dst, 80+(29*align+n)%64, p, crc)
			}
		}
	})
}

func TestKernelLongMessages(t *testing.T) {
	eachKernel(t, func(t *testing.T, k kernel) {
		rng := rand.New(rand.NewPCG(2, uint64(k)))
		const most = 100 << 10
		src, dst := randomBytes(rng, most+64), make([]byte, most+3*80)
		fillCanary(dst)
		lengths := []int{4096, 4136, 8192, cacheChunk + 1, 3 * cacheChunk, 1 << 16, most}
		for range 150 {
			lengths = append(lengths, rng.IntN(most))
		}
		for _, n := range lengths {
			p, crc := src[rng.IntN(64):][:n], rng.Uint32()
			require.Equal(t, oracle(crc, p), k.over(crc, p), "%d bytes", n)
			requireCopy(t, k, dst, 80+rng.IntN(64), p, crc)
		}
	})
}

// What packets meet is the same as the kernels: Update, UpdateShort, Copy.
func TestDispatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	src, dst := randomBytes(rng, 5000), make([]byte, 5000)
	for _, n := range []int{0, 1, 3, 4, 15, 16, 17, 40, 64, 65, 300, 4096, 5000} {
		p, crc := src[:n], rng.Uint32()
		want := oracle(crc, p)
		require.Equal(t, want, Update(crc, p), "%d bytes", n)
		require.Equal(t, want, UpdateShort(crc, p), "%d bytes", n)
		clear(dst)
		require.Equal(t, want, Copy(dst, p, crc), "%d bytes", n)
		require.Equal(t, p, dst[:n])
		require.Equal(t, make([]byte, len(dst)-n), dst[n:], "past a source of %d bytes", n)
	}
}

func TestCopyWantsRoom(t *testing.T) {
	room := make([]byte, 100)
	require.Panics(t, func() { Copy(room[:99], make([]byte, 100), 0) }, "capacity is not length")
	require.NotPanics(t, func() { Copy(nil, nil, 0) })
}

func TestWord(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 1000 {
		crc, p := rng.Uint32(), randomBytes(rng, 4)
		require.Equal(t, oracle(crc, p), Word(crc, binary.LittleEndian.Uint32(p)))
	}
}

func TestCRCAllocations(t *testing.T) {
	src, dst := make([]byte, 4136), make([]byte, 4136)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var header [60]byte
		Update(UpdateShort(0x2144DF1C, header[:]), src)
		Copy(dst, src, 0x2144DF1C)
	}))
}

// The environment takes instructions away; the CRC stays right with what is
// left.
func TestFeaturesOff(t *testing.T) {
	const wanted = "HIXL_TEST_KERNEL"
	if want := os.Getenv(wanted); want != "" {
		require.Equal(t, want, kernelNames[best])
		return
	}
	for godebug, name := range featuresOff {
		t.Run(name, func(t *testing.T) {
			if slices.Index(kernelNames, name) > int(best) {
				t.Skipf("the processor lacks the instructions of kernel %s anyway", name)
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^(TestFeaturesOff|TestDispatch|TestVectors|TestCRCAllocations)$")
			cmd.Env = append(os.Environ(), "GODEBUG="+godebug, wanted+"="+name)
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.ENOEXEC) {
				t.Skip("this host runs the test binary by an emulator alone, so that it cannot start itself")
			}
			require.NoError(t, err, string(out))
		})
	}
}

// FuzzCopy holds every kernel to hash/crc32, at any alignment.
func FuzzCopy(f *testing.F) {
	f.Add([]byte("123456789"), uint32(0), uint8(0), uint8(0))
	f.Add(make([]byte, 64), ^uint32(0x2144DF1C), uint8(0), uint8(12))
	f.Add(make([]byte, 257), uint32(0x2144DF1C), uint8(63), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, crc uint32, from, to uint8) {
		src := make([]byte, int(from)+len(data))[from:]
		copy(src, data)
		dst := make([]byte, int(to)+len(data)+80)
		fillCanary(dst)
		for _, k := range hostKernels() {
			require.Equal(t, oracle(crc, src), k.over(crc, src), kernelNames[k])
			requireCopy(t, k, dst, int(to), src, crc)
		}
		require.Equal(t, data, src, "the source changed")
	})
}
