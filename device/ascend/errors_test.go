//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/ascend/ascendsim"
	"github.com/gohixl/hixl/device/staged"
)

// Without the library, Open says which one, where it was looked for and what to set.
func TestNoLibrary(t *testing.T) {
	t.Setenv("ASCEND_HOME_PATH", "/nowhere/cann")
	t.Setenv("ASCEND_TOOLKIT_HOME", "")
	for name, c := range map[string]ascend.Config{
		"/nowhere/cann/lib64/libascendcl.so": {},
		"/nowhere/else.so":                   {Library: "/nowhere/else.so"},
	} {
		_, err := ascend.Open(c)
		require.ErrorIs(t, err, ascend.ErrLibrary)
		var missing *ascend.LibraryError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, "libascendcl.so", missing.Library)
		require.Contains(t, strings.Join(missing.Tried, "\n"), name)
		require.ErrorContains(t, err, "set_env.sh")
		require.ErrorContains(t, err, "Config.Library")
	}
}

// A file that is no library is refused in the loader's words.
func TestNotALibrary(t *testing.T) {
	name := filepath.Join(t.TempDir(), "libascendcl.so")
	require.NoError(t, os.WriteFile(name, []byte("no library"), 0o600))
	_, err := ascend.Open(ascend.Config{Library: name})
	require.ErrorIs(t, err, ascend.ErrLibrary)
	require.ErrorContains(t, err, name)
}

// So is a driver's library, and the runtime does without it.
func TestNotADriver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "libascend_hal.so")
	require.NoError(t, os.WriteFile(name, []byte("no library"), 0o600))
	s := newSim(t, copies)
	d := s.open(func(c *ascend.Config) { c.Driver = name })
	for _, word := range []string{"halHostRegister", name, "Config.Driver"} {
		require.Contains(t, d.NoMapping(), word)
	}
	b := alloc(t, d, []byte("the rest works"))
	require.NoError(t, d.Free(b))
}

func TestLibraryOfAnotherKind(t *testing.T) {
	c := newSim(t, nil).config()
	_, err := ascend.Open(ascend.Config{Library: c.Driver, Driver: ascend.None})
	var missing *device.NotAvailableError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "aclInit", missing.Symbol)
}

// What a release lacks is missed when it is used, not before.
func TestMissingFunctions(t *testing.T) {
	s := newSim(t, nil, "aclrtGetMemInfo", "aclrtPointerGetAttributes", "aclrtMallocHost", "aclrtRecordEvent")
	d := s.open()
	_, _, mem := d.Memory()
	_, inspect := d.Inspect(64, 8)
	_, pinned := d.AllocHost(64)
	for name, err := range map[string]error{"aclrtGetMemInfo": mem, "aclrtPointerGetAttributes": inspect, "aclrtMallocHost": pinned} {
		var missing *device.NotAvailableError
		require.ErrorAs(t, err, &missing)
		require.ErrorIs(t, err, device.ErrUnsupported)
		require.Equal(t, name, missing.Symbol)
		require.Equal(t, s.config().Library, missing.Library)
		require.Equal(t, "1.17.0", missing.Version)
	}
	b := alloc(t, d, []byte("the rest works"))
	require.NoError(t, d.Free(b))
}

func TestOpenRefusals(t *testing.T) {
	s := newSim(t, map[string]string{"DEVICES": "1"})
	c := s.config()
	c.Device = -1
	_, err := ascend.Open(c)
	require.ErrorIs(t, err, device.ErrArgument)
	c.Device = 1
	_, err = ascend.Open(c)
	var failed *device.DriverError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 107001, failed.Code)
	require.Equal(t, "ACL_ERROR_RT_INVALID_DEVICEID", failed.Name)
	require.Equal(t, "ascend:1", failed.Device)
	require.Equal(t, "aclrtSetDevice", failed.Call)
	require.Contains(t, failed.Message, "device 1, there are 0 to 0")
	require.ErrorContains(t, err, "npu-smi info")
	s.bind()
	s.nothingLeft()
}

func TestRuntimeThatDoesNotStart(t *testing.T) {
	s := newSim(t, map[string]string{"FAIL": "aclInit:507899"})
	_, err := ascend.Open(s.config())
	require.ErrorContains(t, err, "ACL_ERROR_RT_DRV_INTERNAL_ERROR (507899)")
}

// Errors carry the driver's code, its name and its message, and a class to test for.
func TestDriverErrors(t *testing.T) {
	s := newSim(t, map[string]string{"MEMORY": "8388608"})
	d := s.open()
	for _, c := range []struct {
		code  string
		name  string
		class error
	}{
		{"207018", "ACL_ERROR_RT_DEVICE_OOM", device.ErrNoMemory},
		{"507010", "ACL_ERROR_RT_LOST_HEARTBEAT", device.ErrLost},
		{"507899", "ACL_ERROR_RT_DRV_INTERNAL_ERROR", device.ErrFailed},
		{"207000", "ACL_ERROR_RT_FEATURE_NOT_SUPPORT", device.ErrUnsupported},
		{"123456", "unknown error", device.ErrFailed},
	} {
		s.set("FAIL", "aclrtMalloc:"+c.code)
		_, err := d.Alloc(64, device.AllocOptions{})
		require.ErrorIs(t, err, c.class)
		require.ErrorContains(t, err, c.name+" ("+c.code+")")
		require.ErrorContains(t, err, "ASCENDSIM_FAIL", "the driver's own words")
		require.ErrorContains(t, err, "64 bytes of device memory")
	}
	b, err := d.Alloc(64, device.AllocOptions{})
	require.NoError(t, err, "one failure is one failure")
	require.NoError(t, d.Free(b))

	s.set("FAIL", "halHostRegister:6")
	b, err = d.Alloc(4096, device.AllocOptions{Mappable: true})
	require.NoError(t, err)
	_, err = d.Map(b)
	require.ErrorIs(t, err, device.ErrNoMemory)
	require.ErrorContains(t, err, "DRV_ERROR_OUT_OF_MEMORY (6)")
	require.NoError(t, d.Free(b))
}

// Out of device memory is an error of who asked, and leaves nothing behind.
func TestOutOfDeviceMemory(t *testing.T) {
	s := newSim(t, map[string]string{"MEMORY": "4194304"})
	d := s.open()
	p := pool(t, d, staged.Config{})
	first := memory(t, p, 3<<20)
	before := d.Usage()
	_, err := p.Alloc(2 << 20)
	require.ErrorIs(t, err, device.ErrNoMemory)
	var failed *device.DriverError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 207018, failed.Code)
	require.Equal(t, before, d.Usage())
	require.NoError(t, device.WriteAt(first, []byte("still there"), 0))
	free, total, err := d.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, total)
	require.Less(t, free, uint64(1<<20))
}

// A copy that fails takes its own operations along.
func TestFailingCopies(t *testing.T) {
	s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent"})
	d := s.open()
	p := pool(t, d, staged.Config{})
	m := memory(t, p, 1<<20)
	for _, fail := range []string{"copy:507053", "aclrtMemcpyAsync:507899", "aclrtLaunchHostFunc:207005"} {
		s.set("FAIL", fail)
		err := device.WriteAt(m, make([]byte, 100_000), 0)
		require.Error(t, err, fail)
		var failed *device.DriverError
		require.ErrorAs(t, err, &failed, fail)
		require.NoError(t, device.WriteAt(m, []byte("goes on"), 5), fail)
		got := make([]byte, 7)
		require.NoError(t, device.ReadAt(m, got, 5), fail)
		require.Equal(t, "goes on", string(got), fail)
	}
	require.EqualValues(t, 3, p.Stats().Failed)
	require.Equal(t, 4, d.Usage().Streams)
}

// A device that is lost in the middle of everything ends its own operations with a
// typed error, and no other device's; afterwards nothing is left of it.
func TestDeviceLost(t *testing.T) {
	s := newSim(t, map[string]string{"LATENCY": "2000", "MAPPING": "absent", "VMM": "absent"})
	d := s.open()
	other := s.open(func(c *ascend.Config) { c.Device = 1 })
	p, q := pool(t, d, staged.Config{Chunk: 4096}), pool(t, other, staged.Config{})
	m, n := memory(t, p, 1<<20), memory(t, q, 1<<20)
	s.set("LOSE", "0:40")
	var err error
	for deadline := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(deadline); {
		err = device.WriteAt(m, make([]byte, 40_000), 0)
	}
	require.ErrorIs(t, err, device.ErrLost)
	require.ErrorContains(t, err, "ACL_ERROR_RT_LOST_HEARTBEAT (507010)")
	require.ErrorIs(t, device.WriteAt(m, []byte{1}, 0), device.ErrLost)
	require.ErrorIs(t, device.ReadAt(m, []byte{1}, 0), device.ErrLost)
	_, err = d.Alloc(64, device.AllocOptions{})
	require.ErrorIs(t, err, device.ErrLost)
	_, err = d.NewStream(0)
	require.ErrorIs(t, err, device.ErrLost)

	want := []byte("the other one lives")
	require.NoError(t, device.WriteAt(n, want, 9))
	got := make([]byte, len(want))
	require.NoError(t, device.ReadAt(n, got, 9))
	require.Equal(t, want, got)
}

// Work that hangs in a stream does not hang the device: others go on, and a limit
// ends the wait.
func TestHangingStream(t *testing.T) {
	s := newSim(t, nil)
	d := s.open()
	b := alloc(t, d, make([]byte, 64))
	st, err := d.NewStream(0)
	require.NoError(t, err)
	require.NoError(t, st.WaitValue(b.Addr, 1, device.Equal))
	require.ErrorIs(t, st.Sync(10*time.Millisecond), device.ErrTimeout)
	told := make(chan error, 1)
	require.NoError(t, st.Do(func(err error) { told <- err }))
	s.set("LOSE", "0")
	require.ErrorIs(t, <-told, device.ErrLost, "a lost device is noticed although nothing calls back")
	require.ErrorIs(t, st.Copy(), device.ErrLost)
}

// A framework that has started the runtime keeps it.
func TestRuntimeOfAFramework(t *testing.T) {
	s := newSim(t, nil)
	h, err := purego.Dlopen(filepath.Join(s.dir, ascendsim.ACL), purego.RTLD_NOW)
	require.NoError(t, err)
	var initRuntime func(*byte) int32
	var count func(*uint32) int32
	purego.RegisterLibFunc(&initRuntime, h, "aclInit")
	purego.RegisterLibFunc(&count, h, "aclrtGetDeviceCount")
	require.Zero(t, initRuntime(nil))
	d, err := ascend.Open(s.config())
	require.NoError(t, err)
	b := alloc(t, d, []byte("x"))
	require.NoError(t, d.Free(b))
	require.NoError(t, d.Close())
	var n uint32
	require.Zero(t, count(&n), "the runtime is still there")
	s.bind()
	s.nothingLeft()
}

// Two users of a device, one of whom leaves.
func TestTwoUsers(t *testing.T) {
	s := newSim(t, nil)
	d := s.open()
	second, err := ascend.Open(s.config())
	require.NoError(t, err)
	b := alloc(t, d, []byte("first"))
	c := alloc(t, second, []byte("second"))
	require.NoError(t, second.Free(c))
	require.NoError(t, second.Close())
	got := make([]byte, 5)
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: b.Addr, Host: got}))
	require.Equal(t, "first", string(got))
	require.ErrorIs(t, second.Copy(device.Copy{Dir: device.Out, Dev: c.Addr, Host: got}), device.ErrClosed)
}

// Two users who name the libraries differently share one runtime: who leaves first ends
// nothing of the other's.
func TestTwoUsersOfOneRuntime(t *testing.T) {
	s := newSim(t, nil)
	first, err := ascend.Open(s.config())
	require.NoError(t, err)
	second := s.open(func(c *ascend.Config) { c.Driver = ascend.None })
	b := alloc(t, second, []byte("second"))
	require.NoError(t, first.Close())
	got := make([]byte, 6)
	require.NoError(t, second.Copy(device.Copy{Dir: device.Out, Dev: b.Addr, Host: got}))
	require.Equal(t, "second", string(got))
	require.NoError(t, second.Free(b))
}

// A device is not closed from under a pool, whose memory packets may still reach.
func TestCloseUnderAPool(t *testing.T) {
	s := newSim(t, nil)
	d := s.open()
	m := memory(t, pool(t, d, staged.Config{}), 1<<20)
	require.ErrorIs(t, d.Close(), device.ErrBusy)
	require.NoError(t, device.WriteAt(m, make([]byte, 100_000), 0))
}
