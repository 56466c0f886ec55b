//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/staged"
)

var (
	libraryFlag = flag.String("library", "", "libascendcl.so for TestOnDevice; empty is the simulated one")
	driverFlag  = flag.String("driver", "", "libascend_hal.so for TestOnDevice")
	deviceFlag  = flag.Int("device", 0, "device for TestOnDevice")
)

// TestOnDevice holds a runtime against everything that is relied on: the one named by
// -library, or the simulated one.
func TestOnDevice(t *testing.T) {
	c := ascend.Config{Library: *libraryFlag, Driver: *driverFlag, Device: *deviceFlag}
	if c.Library == "" {
		sim := newSim(t, nil).config()
		c.Library, c.Driver = sim.Library, sim.Driver
	}
	open := func(t *testing.T) *ascend.Device {
		d, err := ascend.Open(c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return d
	}
	t.Run("Findings", func(t *testing.T) {
		for _, f := range ascend.Examine(c) {
			t.Logf("%s: ok %v, limited %v: %s", f.Name, f.OK, f.Limited, f.Value)
			require.True(t, f.OK || f.Limited, "%+v", f)
		}
	})
	t.Run("Driver", func(t *testing.T) {
		devicetest.RunDriver(t, func(t *testing.T) device.Driver { return open(t) })
	})
	t.Run("Memory", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Memory {
			return memory(t, pool(t, open(t), staged.Config{}), 2*devicetest.MinSize)
		})
	})
}
