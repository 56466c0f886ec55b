package xdp

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is, beside those of package transport.
var (
	// ErrUnsupported: this system, kernel or link has no AF_XDP of the kind that
	// was asked for.
	ErrUnsupported = errors.New("xdp: not supported here")
	// ErrLinkGone: the link was removed while the Conn was open (*LinkError).
	ErrLinkGone = errors.New("xdp: the link is gone")
)

// LinkError reports a link that was removed. It unwraps to [ErrLinkGone].
type LinkError struct{ Interface string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("xdp: link %s was removed: close the transport and open another", e.Interface)
}

// Unwrap returns [ErrLinkGone].
func (e *LinkError) Unwrap() error { return ErrLinkGone }

// SetupError says which step of opening failed and why.
type SetupError struct {
	Interface string
	Step      string // what was being done
	Err       error  // what the system said
}

func (e *SetupError) Error() string { return fmt.Sprintf("%s on %s: %v", e.Step, e.Interface, e.Err) }

// Unwrap returns the system's error.
func (e *SetupError) Unwrap() error { return e.Err }
