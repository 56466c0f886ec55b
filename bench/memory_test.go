package bench

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/device/staged"
)

// farHost is a host driver that cannot map, so that the CPU sees none of its memory.
type farHost struct{ *host.Driver }

func (d farHost) Caps() device.Caps {
	c := d.Driver.Caps()
	c.Mapping = ""
	return c
}

// farMemory is memory that bytes reach by copies alone.
type farMemory struct {
	drv  farHost
	pool *staged.Pool
}

func openFar() (MemorySource, error) {
	d := farHost{host.NewDriver()}
	p, err := staged.New(d, staged.Config{})
	return &farMemory{d, p}, err
}

func (m *farMemory) Alloc(size int) (device.Memory, func() error, error) {
	mem, err := m.pool.Alloc(uint64(size))
	if err != nil {
		return nil, nil, err
	}
	return mem, mem.Close, nil
}

func (m *farMemory) Describe() string { return "far memory" }

func (m *farMemory) Close() error { return errors.Join(m.pool.Close(), m.drv.Close()) }

// Every operation is measured and verified on memory that the CPU cannot address,
// on either side.
func TestRunOnOtherMemory(t *testing.T) {
	AddMemory("far", openFar)
	require.Equal(t, []string{"host", "far"}, MemoryKinds())
	for _, c := range [][2]string{{"far", "far"}, {"host", "far"}, {"far", ""}} {
		cfg := small(t)
		cfg.Sizes, cfg.Rounds, cfg.Duration, cfg.Baselines = []int{64, 5000}, 1, minSlice, []Baseline{BaselineMemcpy}
		cfg.Memory, cfg.PeerMemory = c[0], c[1]
		r, err := Run(t.Context(), cfg, nil)
		require.NoError(t, err)
		require.Len(t, r.Results, 10)
		for _, x := range r.Results {
			require.True(t, x.Verified)
		}
		names := map[string]string{"far": "far memory", "host": "host", "": "host"}
		require.Equal(t, names[c[0]], r.Config.Memory)
		require.Equal(t, names[c[1]], r.Config.PeerMemory)
	}
}

// A byte that is wrong in such memory is noticed.
func TestOtherMemoryIsVerified(t *testing.T) {
	AddMemory("far", openFar)
	cfg := small(t)
	cfg.PeerMemory = "far"
	_, p := opened(t, cfg)
	require.NoError(t, p.ep.prepare(&preparation{Key: 1, Fill: true, Clear: true}))
	require.NoError(t, device.WriteAt(p.ep.dst.mem, []byte{1}, 100))
	require.NoError(t, p.ep.dst.pull())
	require.EqualValues(t, 1, p.ep.dst.Bytes()[100])
	require.Error(t, (&layout{size: 64, stride: 64, slots: 4}).verify(p.ep.dst.Bytes(), 1, []span{{}}))
}

func TestUnknownMemory(t *testing.T) {
	cfg := small(t)
	cfg.Memory = "ferrite core"
	_, err := Run(t.Context(), cfg, nil)
	require.ErrorContains(t, err, "ferrite core")
	require.ErrorContains(t, err, "-tags ascend")
	cfg.Memory, cfg.PeerMemory = "", "drum"
	_, err = Run(t.Context(), cfg, nil)
	require.ErrorContains(t, err, `memory "drum": this side has host`)
}
