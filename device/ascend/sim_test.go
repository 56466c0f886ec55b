//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/ascend/ascendsim"
	"github.com/gohixl/hixl/internal/hosttest"
)

// builds are the directories of the libraries that were built, by what was left out.
var builds = struct {
	mu   sync.Mutex
	dirs map[string]string
}{dirs: make(map[string]string)}

// build compiles the libraries, once for each choice of what is left out.
func build(without ...string) (string, error) {
	builds.mu.Lock()
	defer builds.mu.Unlock()
	key := strings.Join(without, " ")
	if dir, ok := builds.dirs[key]; ok {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "ascendsim")
	if err != nil {
		return "", err
	}
	builds.dirs[key] = dir
	return dir, ascendsim.Build(dir, without...)
}

func TestMain(m *testing.M) {
	if lib := os.Getenv(touchEnv); lib != "" {
		touch(lib)
		os.Exit(0)
	}
	hosttest.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range builds.dirs {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// sim is a library of its own for one test: loading a copy gives it state of its
// own.
type sim struct {
	t     testing.TB
	dir   string
	users *int // devices that are open
	set   func(key, value string)
	count func(what string) int64
}

// newSim makes libraries with the environment given, keys without their prefix.
func newSim(t testing.TB, env map[string]string, without ...string) *sim {
	t.Helper()
	s := &sim{t: t, dir: t.TempDir(), users: new(int)}
	for k, v := range env {
		t.Setenv("ASCENDSIM_"+k, v)
	}
	built, err := build(without...)
	require.NoError(t, err)
	for _, lib := range []string{ascendsim.ACL, ascendsim.HAL} {
		b, err := os.ReadFile(filepath.Join(built, lib))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, lib), b, 0o700))
	}
	return s
}

func (s *sim) config() ascend.Config {
	return ascend.Config{Library: filepath.Join(s.dir, ascendsim.ACL), Driver: filepath.Join(s.dir, ascendsim.HAL)}
}

// open opens a device and closes it at the end of the test, when the library must
// have nothing left of it.
func (s *sim) open(change ...func(*ascend.Config)) *ascend.Device {
	s.t.Helper()
	c := s.config()
	for _, f := range change {
		f(&c)
	}
	d, err := ascend.Open(c)
	require.NoError(s.t, err)
	*s.users++
	s.t.Cleanup(func() {
		require.NoError(s.t, d.Close())
		if *s.users--; *s.users == 0 {
			s.nothingLeft()
		}
	})
	s.bind()
	return d
}

// in is the same library for another test.
func (s *sim) in(t testing.TB) *sim { return &sim{t: t, dir: s.dir, users: s.users} }

// bind finds the library's own functions for tests.
func (s *sim) bind() {
	h, err := purego.Dlopen(s.config().Library, purego.RTLD_NOW)
	require.NoError(s.t, err)
	purego.RegisterLibFunc(&s.set, h, "ascendsim_set")
	purego.RegisterLibFunc(&s.count, h, "ascendsim_count")
}

// things are what ascendsim_count knows.
var things = []string{"blocks", "buffers", "physical", "mappings", "reservations", "streams", "events", "contexts"}

func (s *sim) nothingLeft() {
	s.t.Helper()
	for _, w := range things {
		require.Zero(s.t, s.count(w), "%s left in the library", w)
	}
}

// alloc allocates device memory and fills it.
func alloc(t testing.TB, d device.Driver, content []byte) device.Block {
	t.Helper()
	b, err := d.Alloc(uint64(len(content)), device.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Copy(device.Copy{Dir: device.In, Dev: b.Addr, Host: content}))
	return b
}

func addrOf(b []byte) device.Addr { return device.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// assertNoError is for goroutines.
func assertNoError(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}
