//go:build amd64 || arm64

package ascend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ebitengine/purego"
)

// started is a runtime that was initialised, once for all who use the same file, by
// whatever names and with whatever driver library.
type started struct {
	owned   bool // aclInit was ours, so that aclFinalize is
	users   int
	devices map[int]int // opened, by number
}

// library is the runtime and the driver, loaded once for all devices of a process
// that name them alike.
type library struct {
	path    string // as the caller gave it
	version string
	acl     acl
	hal     hal
	halPath string // "" when there is none
	halWhy  string // why there is none
	have    map[string]bool

	handles []uintptr // the runtime's first
	users   int       // guarded by libraries.mu
	runtime *started  // guarded by libraries.mu
}

// libraries are those in use, by path, and the runtimes by what the loader calls them.
var libraries = struct {
	mu      sync.Mutex
	open    map[[2]string]*library
	started map[uintptr]*started
}{open: make(map[[2]string]*library), started: make(map[uintptr]*started)}

// acquire loads the libraries of c, or counts one more user, for a device.
func acquire(c *Config) (*library, error) {
	libraries.mu.Lock()
	defer libraries.mu.Unlock()
	key := [2]string{c.Library, c.Driver}
	l := libraries.open[key]
	if l == nil {
		var err error
		if l, err = load(c); err != nil {
			return nil, err
		}
		libraries.open[key] = l
	}
	l.users++
	l.runtime.users++
	l.runtime.devices[c.Device]++
	return l, nil
}

// release ends one use, and reports whether it was the last of its device, which
// calls reset before. The last of all ends the runtime, if it was ours to begin.
func (l *library) release(c *Config, reset func()) {
	libraries.mu.Lock()
	defer libraries.mu.Unlock()
	r := l.runtime
	if r.devices[c.Device]--; r.devices[c.Device] == 0 && r.owned {
		reset()
	}
	if l.users--; l.users == 0 {
		delete(libraries.open, [2]string{c.Library, c.Driver})
	}
	if r.users--; r.users > 0 {
		return
	}
	delete(libraries.started, l.handles[0])
	if r.owned && l.acl.Finalize != nil {
		l.acl.Finalize()
	}
	// The libraries stay loaded: they have threads of their own.
}

// load opens the libraries and initialises the runtime.
func load(c *Config) (*library, error) {
	l := &library{version: "unknown", have: make(map[string]bool)}
	handle, path, err := open("libascendcl.so", aclPlaces(c.Library))
	if err != nil {
		return nil, err
	}
	l.path, l.handles = path, append(l.handles, handle)
	bind(&l.acl, handle, l.have)
	l.loadDriver(c.Driver)
	var v [3]int32
	if l.acl.Version != nil && l.acl.Version(&v[0], &v[1], &v[2]) == 0 {
		l.version = fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
	}
	if l.runtime = libraries.started[handle]; l.runtime != nil {
		return l, nil
	}
	return l, l.start(handle)
}

// start initialises the runtime.
func (l *library) start(handle uintptr) error {
	if l.acl.Init == nil {
		return l.missing("aclInit")
	}
	l.runtime = &started{devices: make(map[int]int)}
	switch n := l.acl.Init(nil); n {
	case 0:
		l.runtime.owned = true
	case errRepeatInit: // a framework was here before
	default:
		return describe(aclCodes, "ascend", "aclInit", "starting the runtime", int(n), l.message())
	}
	libraries.started[handle] = l.runtime
	return nil
}

// loadDriver opens the driver's library, if it can.
func (l *library) loadDriver(name string) {
	if name == None {
		l.halWhy = "Config.Driver says none"
		return
	}
	handle, path, err := open("libascend_hal.so", halPlaces(name))
	if err != nil {
		var missing *LibraryError
		if errors.As(err, &missing) {
			missing.Remedy = halRemedy
		}
		l.halWhy = err.Error()
		return
	}
	l.halPath, l.handles = path, append(l.handles, handle)
	bind(&l.hal, handle, l.have)
}

// aclPlaces are where the runtime may be, best first.
func aclPlaces(name string) []string {
	if name != "" {
		return []string{name}
	}
	var places []string
	for _, env := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if dir := os.Getenv(env); dir != "" {
			places = append(places, filepath.Join(dir, "lib64", "libascendcl.so"))
		}
	}
	return append(places, "libascendcl.so")
}

func halPlaces(name string) []string {
	if name != "" {
		return []string{name}
	}
	return []string{"libascend_hal.so", "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so"}
}

// open loads the first of the places that can be.
func open(library string, places []string) (handle uintptr, path string, err error) {
	failed := &LibraryError{Library: library, Remedy: remedy}
	for _, p := range places {
		handle, err := purego.Dlopen(p, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return handle, p, nil
		}
		failed.Tried = append(failed.Tried, fmt.Sprintf("%s: %v", p, err))
	}
	return 0, "", failed
}

// message is what the runtime said last on this thread.
func (l *library) message() string {
	if l.acl.RecentErrMsg == nil {
		return ""
	}
	return text(l.acl.RecentErrMsg())
}
