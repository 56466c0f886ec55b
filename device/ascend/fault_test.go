//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
)

// touchEnv makes the test program one that loads from a device address and names
// the directory of the libraries.
const touchEnv = "HIXL_TEST_TOUCH_DEVICE_MEMORY"

// touch is the child of TestLoadOfDeviceAddressFaults.
func touch(dir string) {
	d, err := ascend.Open((&sim{dir: dir}).config())
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := d.Alloc(4096, device.AllocOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("about to load")
	p := uintptr(b.Addr)
	fmt.Println("loaded", **(**byte)(unsafe.Pointer(&p)))
}

// Nothing above may follow a device address: whoever does crashes.
func TestLoadOfDeviceAddressFaults(t *testing.T) {
	s := newSim(t, nil)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), touchEnv+"="+s.dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Contains(t, string(out), "about to load")
	require.NotContains(t, string(out), "loaded")
	require.Contains(t, string(out), "SIGSEGV")
}
