package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

func newDriver(t *testing.T) *host.Driver {
	d := host.NewDriver()
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDriverConforms(t *testing.T) {
	devicetest.RunDriver(t, func(t *testing.T) device.Driver { return newDriver(t) })
}

// Work that fails ends its stream, and only that.
func TestStreamFails(t *testing.T) {
	d := newDriver(t)
	b, err := d.Alloc(4096, device.AllocOptions{})
	require.NoError(t, err)
	flag, err := d.Alloc(8, device.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Copy(device.Copy{Dir: device.In, Dev: flag.Addr, Host: make([]byte, 8)}))
	s, err := d.NewStream(0)
	require.NoError(t, err)
	other, err := d.NewStream(0)
	require.NoError(t, err)

	told := make(chan error, 1)
	require.NoError(t, s.WaitValue(flag.Addr, 1, device.Equal))
	require.NoError(t, s.Copy(device.Copy{Dir: device.In, Dev: b.Addr, Host: make([]byte, 8)}))
	require.NoError(t, s.Do(func(err error) { told <- err }))
	require.NoError(t, d.Free(b)) // under the copy that waits
	require.NoError(t, other.WriteValue(flag.Addr, 1))
	require.ErrorIs(t, <-told, device.ErrArgument)
	require.ErrorIs(t, s.Sync(0), device.ErrArgument)
	require.ErrorIs(t, s.Copy(), device.ErrArgument)
	require.NoError(t, other.Sync(0))
}
