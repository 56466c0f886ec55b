//go:build linux && (amd64 || arm64)

package ascendsim_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device/ascend/ascendsim"
)

// runtimeLib calls the library's functions by name.
type runtimeLib struct {
	t        *testing.T
	acl, hal uintptr
}

func load(t *testing.T) *runtimeLib {
	dir := t.TempDir()
	require.NoError(t, ascendsim.Build(dir))
	l := &runtimeLib{t: t}
	var err error
	l.acl, err = purego.Dlopen(filepath.Join(dir, ascendsim.ACL), purego.RTLD_NOW)
	require.NoError(t, err)
	l.hal, err = purego.Dlopen(filepath.Join(dir, ascendsim.HAL), purego.RTLD_NOW)
	require.NoError(t, err)
	return l
}

//go:uintptrescapes
func (l *runtimeLib) call(name string, args ...uintptr) int {
	handle := l.acl
	if name[:3] == "hal" {
		handle = l.hal
	}
	f, err := purego.Dlsym(handle, name)
	require.NoError(l.t, err)
	r, _, _ := purego.SyscallN(f, args...)
	return int(int32(r))
}

// pointer calls a function whose first argument takes a result.
func (l *runtimeLib) pointer(name string, args ...uintptr) uintptr {
	require.Zero(l.t, l.call(name, append([]uintptr{uintptr(unsafe.Pointer(&result))}, args...)...), name)
	return result
}

// result is where C puts a pointer: not on a stack, which may move.
var result uintptr

const (
	h2h = iota
	h2d
	d2h
)

// Every wrong use is refused, with the number that the runtime has for it.
func TestWrongUse(t *testing.T) {
	l := load(t)
	runtime.LockOSThread() // a context belongs to a thread; the thread ends with the test
	scratch := l.scratch()
	require.Equal(t, 100001, l.call("aclrtMalloc", scratch, 64, 0), "before aclInit")
	require.Zero(t, l.call("aclInit", 0))
	require.Equal(t, 100002, l.call("aclInit", 0))
	require.Equal(t, 107002, l.call("aclrtMalloc", scratch, 64, 0), "no context on this thread")
	require.Equal(t, 107001, l.call("aclrtSetDevice", 7))
	require.Zero(t, l.call("aclrtSetDevice", 0))

	dev, host := l.pointer("aclrtMalloc", 4096, 0), l.pointer("aclrtMallocHost", 4096)
	small := l.pointer("aclrtMalloc", 64, 0)
	stream := l.pointer("aclrtCreateStream")
	freed := l.pointer("aclrtMalloc", 4096, 0)
	require.Zero(t, l.call("aclrtFree", freed))
	goMemory := make([]byte, 64)
	pageable := uintptr(unsafe.Pointer(&goMemory[0]))
	for _, c := range []struct {
		name string
		want int
		args []uintptr
	}{
		{"aclrtMalloc", 107000, []uintptr{scratch, 0, 0}},
		{"aclrtMalloc", 107000, []uintptr{scratch, 64, 99}},
		{"aclrtMalloc", 207018, []uintptr{scratch, 1 << 40, 0}},
		{"aclrtFree", 107000, []uintptr{freed}},
		{"aclrtFree", 107000, []uintptr{dev + 64}},
		{"aclrtFreeHost", 107000, []uintptr{dev}},
		{"aclrtMemcpy", 107000, []uintptr{freed, 64, host, 64, h2d}},
		{"aclrtMemcpy", 107000, []uintptr{dev, 32, host, 64, h2d}},
		{"aclrtMemcpy", 107000, []uintptr{dev, 8192, host, 8192, h2d}},
		{"aclrtMemcpy", 107000, []uintptr{dev, 64, host, 64, d2h}},
		{"aclrtMemcpy", 107000, []uintptr{host, 64, dev, 64, h2d}},
		{"aclrtMemcpy", 107000, []uintptr{dev, 64, host, 64, 9}},
		{"aclrtMemcpy", 107000, []uintptr{dev, 64, host, 0, h2d}},
		{"aclrtMemcpyAsync", 107000, []uintptr{dev, 64, pageable, 64, h2d, stream}},
		{"aclrtMemcpyAsync", 207000, []uintptr{host, 64, host + 64, 64, h2h, stream}},
		{"aclrtMemcpyAsync", 107017, []uintptr{dev, 64, host, 64, h2d, 12345}},
		{"aclrtValueWrite", 107008, []uintptr{dev + 4, 1, 0, stream}},
		{"aclrtValueWait", 107000, []uintptr{host, 1, 0, stream}},
		{"aclrtValueWait", 107000, []uintptr{dev, 1, 9, stream}},
		{"aclrtRecordEvent", 107017, []uintptr{12345, stream}},
		{"aclrtReserveMemAddress", 107000, []uintptr{scratch, 4096, 0, 0, 0}},
		{"aclrtUnmapMem", 107000, []uintptr{dev}},
		{"halHostRegister", 8, []uintptr{small, 64, 2, 0, scratch}},
		{"halHostRegister", 3, []uintptr{host, 4096, 2, 0, scratch}},
		{"halHostRegister", 2, []uintptr{dev, 4096, 2, 7, scratch}},
		{"halHostRegister", 0xfffe, []uintptr{dev, 4096, 0, 0, scratch}},
		{"halHostUnregister", 11, []uintptr{dev, 0}},
		{"aclrtLaunchHostFunc", 107000, []uintptr{stream, 0, 0}},
		{"aclrtSynchronizeStream", 0, []uintptr{stream}},
	} {
		require.Equal(t, c.want, l.call(c.name, c.args...), "%s(%x)", c.name, c.args)
	}
	runtime.KeepAlive(goMemory)
	l.context(dev, host, stream)
	require.Zero(t, l.call("aclrtResetDevice", 0))
	require.Equal(t, 107002, l.call("aclrtFree", dev), "the context went with the device")
	require.Zero(t, l.call("aclFinalize"))
}

// scratch is somewhere for results that do not matter.
func (l *runtimeLib) scratch() uintptr {
	b := new([64]byte)
	l.t.Cleanup(func() { runtime.KeepAlive(b) })
	return uintptr(unsafe.Pointer(b))
}

// context uses what belongs to another one.
func (l *runtimeLib) context(dev, host, stream uintptr) {
	ctx := l.pointer("aclrtCreateContext", 0)
	require.Equal(l.t, 107003, l.call("aclrtMemcpyAsync", dev, 64, host, 64, h2d, stream), "a stream of another context")
	other := l.pointer("aclrtCreateContext", 1)
	require.Equal(l.t, 107000, l.call("aclrtMemcpy", dev, 64, host, 64, h2d), "memory of another device")
	require.Zero(l.t, l.call("aclrtDestroyContext", other))
	require.Zero(l.t, l.call("aclrtDestroyContext", ctx))
	require.Equal(l.t, 107002, l.call("aclrtDestroyContext", ctx))
	require.Zero(l.t, l.call("aclrtSetDevice", 0))
}

// Memory that is freed under a copy fails the copy, not the process.
func TestFreedUnderACopy(t *testing.T) {
	t.Setenv("ASCENDSIM_LATENCY", "1000")
	l := load(t)
	runtime.LockOSThread()
	require.Zero(t, l.call("aclInit", 0))
	require.Zero(t, l.call("aclrtSetDevice", 0))
	dev, flag, host := l.pointer("aclrtMalloc", 4096, 0), l.pointer("aclrtMalloc", 64, 0), l.pointer("aclrtMallocHost", 4096)
	stream, other := l.pointer("aclrtCreateStream"), l.pointer("aclrtCreateStream")
	require.Zero(t, l.call("aclrtValueWait", flag, 42, 1, stream))
	require.Zero(t, l.call("aclrtMemcpyAsync", dev, 4096, host, 4096, h2d, stream))
	require.Equal(t, 107000, l.call("aclrtDestroyStream", stream), "it has work")
	require.Zero(t, l.call("aclrtFree", dev))
	require.Zero(t, l.call("aclrtValueWrite", flag, 42, 0, other))
	require.Equal(t, 507053, l.call("aclrtSynchronizeStream", stream))
	require.Zero(t, l.call("aclrtSynchronizeStream", other))
	require.Zero(t, l.call("aclrtResetDevice", 0))
	require.Zero(t, l.call("aclFinalize"))
}

func TestBuildSaysWhatTheCompilerSays(t *testing.T) {
	require.ErrorContains(t, ascendsim.Build(t.TempDir(), "a b { c"), "gcc")
}
