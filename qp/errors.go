package qp

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels to test for with errors.Is.
var (
	// ErrState: not in this state, or no such transition.
	ErrState = errors.New("qp: not possible in this state")
	// ErrAttr: attributes missing, not allowed or out of range.
	ErrAttr = errors.New("qp: attributes do not fit")
	// ErrWorkRequest: a work request that cannot be carried out.
	ErrWorkRequest = errors.New("qp: bad work request")
	// ErrRecvQueueFull: as many receives wait as the receive queue holds.
	ErrRecvQueueFull = errors.New("qp: receive queue is full")
	// ErrConfig: a configuration value out of its limits.
	ErrConfig = errors.New("qp: bad configuration")
	// ErrShared: the queue pair takes its receives from a shared receive queue.
	ErrShared = errors.New("qp: receives are posted to the shared receive queue")
	// ErrBusy: queue pairs still use the shared receive queue.
	ErrBusy = errors.New("qp: still in use")
	// ErrNotAddressable: inline data lies in memory the CPU cannot read.
	ErrNotAddressable = errors.New("qp: memory is not addressable by the CPU")
)

// StateError says that a queue pair's state does not allow something. It unwraps
// to [ErrState].
type StateError struct {
	Op    string // "modify", "post send", "post receive"
	State State
	// To is the state asked for, and Allowed those that can be reached, when Op
	// is "modify".
	To      State
	Allowed []State
	// Advice says what to do.
	Advice string

	transition bool
}

func (e *StateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "qp: %s in state %v", e.Op, e.State)
	if e.transition {
		fmt.Fprintf(&b, " to %v is not possible; from %v a queue pair goes to", e.To, e.State)
		for i, s := range e.Allowed {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %v", s)
		}
	} else {
		b.WriteString(" is not possible")
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Unwrap returns [ErrState].
func (e *StateError) Unwrap() error { return ErrState }

// AttrError says which attributes of a Modify do not fit: missing and surplus
// ones, or one whose value is out of range. It unwraps to [ErrAttr].
type AttrError struct {
	From, To            State
	Missing, NotAllowed AttrMask
	// Attr is the attribute whose Value is not one of Allowed; 0 if the masks
	// are at fault.
	Attr    AttrMask
	Value   any
	Allowed string
}

func (e *AttrError) Error() string {
	s := fmt.Sprintf("qp: modify %v to %v", e.From, e.To)
	if e.Attr != 0 {
		return fmt.Sprintf("%s: %v is %v, allowed: %s", s, e.Attr, e.Value, e.Allowed)
	}
	if e.Missing != 0 {
		s += fmt.Sprintf(": %v must be given", e.Missing)
	}
	if e.NotAllowed != 0 {
		s += fmt.Sprintf(": %v cannot be given here", e.NotAllowed)
	}
	return s
}

// Unwrap returns [ErrAttr].
func (e *AttrError) Unwrap() error { return ErrAttr }

// PostError says which work request of a list was refused. Those before it were
// posted, it and those after it were not. It unwraps to the reason.
type PostError struct {
	Index int    // into the list
	WRID  uint64 // its number
	Err   error
}

func (e *PostError) Error() string {
	return fmt.Sprintf("qp: work request %d (id %d) refused, those before it are posted: %v", e.Index, e.WRID, e.Err)
}

// Unwrap returns the reason.
func (e *PostError) Unwrap() error { return e.Err }

// SGEError says which scatter/gather entry of a work request cannot be used. It
// unwraps to the reason, an *mr.AccessError as a rule.
type SGEError struct {
	Index int
	Err   error
}

func (e *SGEError) Error() string { return fmt.Sprintf("scatter/gather entry %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *SGEError) Unwrap() error { return e.Err }

// WorkRequestError says what about a work request is impossible. It unwraps to
// [ErrWorkRequest].
type WorkRequestError struct {
	What, Allowed string
}

func (e *WorkRequestError) Error() string {
	return fmt.Sprintf("qp: work request has %s, allowed: %s", e.What, e.Allowed)
}

// Unwrap returns [ErrWorkRequest].
func (e *WorkRequestError) Unwrap() error { return ErrWorkRequest }

// ConfigError reports a configuration value out of its limits. It unwraps to
// [ErrConfig].
type ConfigError struct {
	Field   string
	Value   any
	Allowed string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("qp: %s is %v, allowed: %s", e.Field, e.Value, e.Allowed)
}

// Unwrap returns [ErrConfig].
func (e *ConfigError) Unwrap() error { return ErrConfig }
