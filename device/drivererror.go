package device

import (
	"errors"
	"fmt"
	"strings"
)

// What errors of a driver unwrap to.
var (
	// ErrLost: the device is gone or hung. Nothing on it will work again.
	ErrLost = errors.New("device: lost")
	// ErrNoMemory: the device, or the host, has no memory left.
	ErrNoMemory = errors.New("device: out of memory")
	// ErrUnsupported: this device, driver or library cannot do it.
	ErrUnsupported = errors.New("device: not supported")
	// ErrArgument: a call that can never work, such as freeing twice.
	ErrArgument = errors.New("device: bad argument")
	// ErrTimeout: it did not end in the time given.
	ErrTimeout = errors.New("device: timeout")
	// ErrFailed: the device reports a failure of another kind.
	ErrFailed = errors.New("device: failed")
	// ErrResource: no more streams, events or other things with a fixed number.
	ErrResource = errors.New("device: out of streams, events or the like")
)

// DriverError is what a device's own software reported. It unwraps to the
// sentinel of its class: ErrLost, ErrNoMemory, ErrUnsupported, ErrArgument,
// ErrTimeout, ErrResource or ErrFailed.
type DriverError struct {
	// Device is its Info.Name.
	Device string
	// Call is the function of the driver, or "" for work that failed in a stream.
	Call string
	// What was asked for, such as "256 bytes host to device".
	What string
	// Code is the driver's own number for the error, Name its constant's name.
	Code int
	Name string
	// Message is what the driver had to say most recently, if anything.
	Message string
	// Class is what the error unwraps to; nil is ErrFailed.
	Class error
	// Advice says what to do, if that is known.
	Advice string
}

// Error says everything on one line.
func (e *DriverError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "device %s: ", e.Device)
	if e.What != "" {
		b.WriteString(e.What + ": ")
	}
	if e.Call != "" {
		b.WriteString(e.Call + ": ")
	}
	fmt.Fprintf(&b, "%s (%d)", e.Name, e.Code)
	if m := strings.Join(strings.Fields(e.Message), " "); m != "" {
		fmt.Fprintf(&b, ": %q", m)
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Unwrap returns Class.
func (e *DriverError) Unwrap() error {
	if e.Class == nil {
		return ErrFailed
	}
	return e.Class
}

// NotAvailableError says that a function was asked for that the driver library at
// hand does not have. It unwraps to ErrUnsupported.
type NotAvailableError struct {
	Symbol  string // the function
	Library string // where it was looked for
	Version string // of the library, or "unknown"
}

// Error says what is missing where.
func (e *NotAvailableError) Error() string {
	return fmt.Sprintf("device: not available: %s in %s, version %s", e.Symbol, e.Library, e.Version)
}

// Unwrap returns ErrUnsupported.
func (e *NotAvailableError) Unwrap() error { return ErrUnsupported }

// ArgumentError is a call that can never work, noticed before the driver was
// asked. It unwraps to ErrArgument.
type ArgumentError struct {
	Call    string // the method
	What    string // what was given
	Allowed string // what is right
}

// Error says what was given and what is right.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("device: %s: %s; give %s", e.Call, e.What, e.Allowed)
}

// Unwrap returns ErrArgument.
func (e *ArgumentError) Unwrap() error { return ErrArgument }
