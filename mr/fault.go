package mr

import "fmt"

// Fault is why a key, range or right was refused. It is an error that costs no
// allocation, for the path on which a peer may send refusals as fast as the
// wire carries them; Explain makes a full AccessError of it for a reader. The
// zero Fault is none and is never returned as an error.
type Fault uint8 //nolint:errname // first of all an enumeration

// The faults, in the order in which they are checked.
//
//nolint:errname // values of an enumeration
const (
	// FaultKey: unknown or stale key. Is ErrKey.
	FaultKey Fault = 1 + iota
	// FaultKind: an lkey where an rkey belongs or the reverse. Is ErrKey.
	FaultKind
	// FaultRevoked: the region is being deregistered, or its rkey was
	// invalidated. Is ErrRevoked.
	FaultRevoked
	// FaultPD: the region is another protection domain's. Is ErrPD.
	FaultPD
	// FaultPermission: the region does not grant the access. Is ErrPermission.
	FaultPermission
	// FaultBounds: not all bytes are inside the region. Is ErrBounds.
	FaultBounds
)

// Error names the fault.
func (f Fault) Error() string {
	switch f {
	case FaultKind:
		return "mr: key is of the other kind (lkey and rkey confused)"
	default:
		if s := f.Unwrap(); s != nil {
			return s.Error()
		}
		return fmt.Sprintf("mr: fault %d", uint8(f))
	}
}

// Unwrap returns the sentinel of the fault.
func (f Fault) Unwrap() error {
	switch f {
	case FaultKey, FaultKind:
		return ErrKey
	case FaultRevoked:
		return ErrRevoked
	case FaultPD:
		return ErrPD
	case FaultPermission:
		return ErrPermission
	case FaultBounds:
		return ErrBounds
	default:
		return nil
	}
}

// AccessError is a Fault with everything that is known about it. It unwraps to
// the Fault and through it to the sentinel.
type AccessError struct {
	Op    string // what was attempted, such as "remote write" or "local SGE"
	Fault Fault
	Key   uint32
	Addr  uint64 // first address asked for
	Len   uint64 // bytes asked for

	// Base, Size and Have describe the region; zero when the key names none.
	Base, Size uint64
	Need, Have Access
}

// Error says what was asked for, what the region allows and what to do.
func (e *AccessError) Error() string {
	ask := fmt.Sprintf("mr: %s of %d bytes at %#x with key %#08x: ", e.Op, e.Len, e.Addr, e.Key)
	switch e.Fault {
	case FaultKey:
		return ask + "no region has this key; it was deregistered or never registered here: " +
			"exchange keys again after registering, and check which NIC the key is for"
	case FaultKind:
		return ask + "the key is of the other kind; use the region's LKey in local work requests and its RKey for the peer"
	case FaultRevoked:
		return ask + "the region is being deregistered or its rkey was invalidated; register it anew and hand out the new key"
	case FaultPD:
		return ask + "the region belongs to another protection domain; register it in the queue pair's"
	case FaultPermission:
		return ask + fmt.Sprintf("needs %v but the region has %v; register it with the missing rights", e.Need, e.Have)
	case FaultBounds:
		return ask + fmt.Sprintf("the region has %d bytes from %#x; stay within them", e.Size, e.Base)
	default:
		return ask + e.Fault.Error()
	}
}

// Unwrap returns the Fault.
func (e *AccessError) Unwrap() error { return e.Fault }
