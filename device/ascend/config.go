package ascend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gohixl/hixl/device"
)

// ErrLibrary means that the runtime's library cannot be loaded (*LibraryError).
var ErrLibrary = errors.New("ascend: no runtime library")

// Config says which device to open, and with what. The zero value opens device 0
// with the libraries that the dynamic loader finds.
type Config struct {
	// Device is the number of the device as the process sees it, from 0.
	Device int
	// Library is the path of libascendcl.so. Empty looks at ASCEND_HOME_PATH and
	// ASCEND_TOOLKIT_HOME, below each in lib64, then asks the loader.
	Library string
	// Driver is the path of libascend_hal.so, for mappings. Empty asks the loader
	// and looks in /usr/local/Ascend/driver/lib64/driver; None does without.
	Driver string
	// MaxMapping bounds one mapping in bytes, 0 for whatever the device takes.
	MaxMapping uint64
	// NoMapping does without mappings even where they work.
	NoMapping bool
}

// None as Config.Driver loads no driver library.
const None = "none"

// LibraryError says that a library could not be loaded. It unwraps to ErrLibrary.
type LibraryError struct {
	Library string   // its name
	Tried   []string // where, and what the loader said
	Remedy  string   // what to set
}

// Error says which library was looked for, where, and what to set.
func (e *LibraryError) Error() string {
	return fmt.Sprintf("ascend: %s was not found (tried %s); %s", e.Library, strings.Join(e.Tried, "; "), e.Remedy)
}

// Unwrap returns ErrLibrary.
func (e *LibraryError) Unwrap() error { return ErrLibrary }

const remedy = "source set_env.sh of the CANN toolkit, which sets LD_LIBRARY_PATH, or name the file in Config.Library (HIXL_ASCEND_LIBRARY for commands)"

const halRemedy = "install the Ascend driver, or name the file in Config.Driver (HIXL_ASCEND_DRIVER for commands)"

// check refuses what cannot be meant.
func (c *Config) check() error {
	if c.Device < 0 || c.Device > 1<<16 {
		return &device.ArgumentError{Call: "ascend.Open", What: fmt.Sprintf("device %d", c.Device), Allowed: "0 or more"}
	}
	return nil
}
