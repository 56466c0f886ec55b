//go:build !linux || !(amd64 || arm64)

package ascend

import (
	"runtime"

	"github.com/gohixl/hixl/device"
)

// Device is an opened NPU. There are none on this platform.
type Device struct{ device.Driver }

// NoMapping says why there is no mapping.
func (*Device) NoMapping() string { return "no device" }

// Memory tells free and whole memory of a device.
func (*Device) Memory() (free, total uint64, err error) { return 0, 0, device.ErrUnsupported }

// Open fails: the runtime exists on linux, on amd64 and arm64, only.
func Open(c Config) (*Device, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return nil, &LibraryError{
		Library: "libascendcl.so", Tried: []string{runtime.GOOS + "/" + runtime.GOARCH + ", for which there is none"},
		Remedy: "run on linux, on amd64 or arm64",
	}
}
