//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/staged"
)

func pool(t testing.TB, d device.Driver, c staged.Config) *staged.Pool {
	t.Helper()
	p, err := staged.New(d, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func memory(t testing.TB, p *staged.Pool, size uint64) *staged.Memory {
	t.Helper()
	m, err := p.Alloc(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// Memory over the driver keeps all promises of device.Memory, with and without a
// mapping, on an old release too.
func TestMemoryConforms(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			s := newSim(t, shape.env, shape.without...)
			devicetest.Run(t, func(t *testing.T) device.Memory {
				d := s.in(t).open(func(c *ascend.Config) {
					if shape.change != nil {
						shape.change(c)
					}
				})
				m := memory(t, pool(t, d, staged.Config{}), 2*devicetest.MinSize+24)
				require.Equal(t, shape.mapping != "", m.Mapped())
				return m
			})
		})
	}
}

// A mapping that turns out to be too large for the device is done without.
func TestMappingThatDoesNotFit(t *testing.T) {
	s := newSim(t, map[string]string{"MAPPING": "limited:65536"})
	p := pool(t, s.open(), staged.Config{})
	small, large := memory(t, p, 65536), memory(t, p, 65537)
	require.True(t, small.Mapped())
	require.False(t, large.Mapped())
	for _, m := range []*staged.Memory{small, large} {
		require.NoError(t, device.WriteAt(m, []byte("both work"), 1))
		got := make([]byte, 9)
		require.NoError(t, device.ReadAt(m, got, 1))
		require.Equal(t, "both work", string(got))
	}
}

// done reports the time of an end and what is in memory then.
type done struct{ c chan error }

func (d *done) MemoryDone(_ uint64, err error) { d.c <- err }

// Nothing is reported before it is in device memory: copies take 50 ms here, and the
// content is read back in no time as soon as the end is told.
func TestVisibility(t *testing.T) {
	for name, without := range map[string][]string{"callbacks": nil, "events": oldRelease} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent"}, without...)
			d := s.open()
			m := memory(t, pool(t, d, staged.Config{}), 1<<20)
			for round := range 3 {
				want := bytes.Repeat([]byte{byte(round + 1)}, 1<<20)
				e := &done{make(chan error, 1)}
				s.set("LATENCY", "50000")
				start := time.Now()
				_, err := m.WriteV([]device.Vec{{B: want}}, 1, e)
				require.NoError(t, err)
				require.NoError(t, <-e.c)
				require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
				s.set("LATENCY", "0")
				got := make([]byte, len(want))
				require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: m.Block().Addr, Host: got}))
				require.True(t, bytes.Equal(want, got), "round %d", round)
			}
		})
	}
}

// Fresh device memory holds what was there before; fresh regions must not.
func TestAllocClears(t *testing.T) {
	s := newSim(t, nil)
	d := s.open()
	b, err := d.Alloc(4096, device.AllocOptions{})
	require.NoError(t, err)
	dirt := make([]byte, 4096)
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: b.Addr, Host: dirt}))
	require.NotEqual(t, make([]byte, 4096), dirt, "the library gives no zeros, so that this test can fail")
	require.NoError(t, d.Free(b))
	m := memory(t, pool(t, d, staged.Config{}), 4096)
	got := make([]byte, 4096)
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: m.Block().Addr, Host: got}))
	require.Equal(t, make([]byte, 4096), got)
}

// Memory of a framework, by its pointer alone.
func TestAdopt(t *testing.T) {
	s := newSim(t, nil)
	framework, ours := s.open(), s.open()
	b := alloc(t, framework, bytes.Repeat([]byte{7}, 8192))
	p := pool(t, ours, staged.Config{})
	m, err := p.Adopt(b)
	require.NoError(t, err)
	require.NoError(t, device.WriteAt(m, []byte("tensor"), 100))
	require.NoError(t, m.Close())
	got := make([]byte, 6)
	require.NoError(t, framework.Copy(device.Copy{Dir: device.Out, Dev: b.Addr + 100, Host: got}))
	require.Equal(t, "tensor", string(got))
	_, err = p.Adopt(device.Block{Addr: b.Addr, Size: 1 << 20})
	require.ErrorIs(t, err, device.ErrRange)
	pinned, err := framework.AllocHost(64)
	require.NoError(t, err)
	a, err := ours.Inspect(addrOf(pinned), 64)
	require.NoError(t, err)
	require.Equal(t, device.PlaceHost, a.Place)
	_, err = p.Adopt(device.Block{Addr: addrOf(pinned), Size: 64})
	require.ErrorIs(t, err, device.ErrArgument)
}

// Everything from many goroutines at once.
func TestConcurrentUse(t *testing.T) {
	s := newSim(t, nil)
	d := s.open()
	p := pool(t, d, staged.Config{Chunk: 8192})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			m, err := p.Alloc(1 << 16)
			if !assertNoError(t, err) {
				return
			}
			defer func() { assertNoError(t, m.Close()) }()
			for round := range 20 {
				want := bytes.Repeat([]byte{byte(g*20 + round)}, 1000*(round+1))
				got := make([]byte, len(want))
				if !assertNoError(t, device.WriteAt(m, want, uint64(round))) || !assertNoError(t, device.ReadAt(m, got, uint64(round))) {
					return
				}
				if !bytes.Equal(want, got) {
					t.Errorf("goroutine %d, round %d: bytes differ", g, round)
				}
				b, err := d.Alloc(100, device.AllocOptions{})
				if assertNoError(t, err) {
					assertNoError(t, d.Free(b))
				}
			}
		})
	}
	wg.Wait()
}
