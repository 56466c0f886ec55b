package dsync

import (
	"errors"
	"fmt"
	"net/netip"
)

// What went wrong, to test for with errors.Is; beside them are the errors of
// transfers, see [hixl.TransferError].
var (
	// ErrLayout: no such object lies there, or it does not fit there.
	ErrLayout = errors.New("no such object")
	// ErrHeld: somebody holds the lock.
	ErrHeld = errors.New("held by another")
	// ErrLeaseLost: the lease is over, and another may hold the lock.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrFenced: a greater fencing token has been seen.
	ErrFenced = errors.New("fenced out: a greater token was there before")
	// ErrConflict: the value has another version than expected, or the barrier is at
	// another round.
	ErrConflict = errors.New("the version or round is another one")
	// ErrTooLarge: more bytes than fit.
	ErrTooLarge = errors.New("too large")
	// ErrRestarted: the other end of a ring is another one now.
	ErrRestarted = errors.New("the other end has been replaced")
	// ErrUncertain: it may have taken effect, and nobody can say.
	ErrUncertain = errors.New("it may have taken effect")
)

// Error is an operation on an object that failed. It unwraps to Err.
type Error struct {
	Object string // such as "lock"
	Op     string // such as "acquire"
	Peer   netip.AddrPort
	Region string // its name, if it has one
	Off    uint64 // of the object in the region
	Err    error
}

func (e *Error) Error() string {
	where := ""
	if e.Region != "" {
		where = fmt.Sprintf(" of region %q", e.Region)
	}
	if e.Peer.IsValid() {
		where += fmt.Sprintf(" at peer %v", e.Peer)
	}
	return fmt.Sprintf("dsync: %s: %s at offset %d%s: %v", e.Op, e.Object, e.Off, where, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
