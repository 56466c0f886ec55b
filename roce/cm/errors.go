package cm

import (
	"errors"
	"fmt"
)

// What the errors of commands unwrap to.
var (
	// ErrParam: a parameter is out of range.
	ErrParam = errors.New("cm: wrong parameter")
	// ErrState: the connection is not in a state for this command.
	ErrState = errors.New("cm: wrong state")
	// ErrUnknown: no connection or SIDR exchange has this id, or no longer.
	ErrUnknown = errors.New("cm: no such connection")
	// ErrListening: somebody listens on this service id already.
	ErrListening = errors.New("cm: service id in use")
	// ErrLimit: the agent has as many connections as it may.
	ErrLimit = errors.New("cm: too many connections")
)

// What the errors of ended connections unwrap to ([Event.Err]).
var (
	// ErrRejected: the connection was refused.
	ErrRejected = errors.New("cm: connection rejected")
	// ErrUnreachable: the peer did not answer.
	ErrUnreachable = errors.New("cm: peer does not answer")
	// ErrDisconnected: the connection was taken down.
	ErrDisconnected = errors.New("cm: disconnected")
)

// StateError says that a command does not fit a connection's state. It unwraps
// to [ErrState].
type StateError struct {
	Command string
	ID      CommID
	State   State
}

func (e *StateError) Error() string {
	return fmt.Sprintf("cm: %s: connection %v is in state %v", e.Command, e.ID, e.State)
}

// Unwrap returns [ErrState].
func (e *StateError) Unwrap() error { return ErrState }

// IDError says that an id is not known. It unwraps to [ErrUnknown].
type IDError struct {
	Command string
	ID      CommID
}

func (e *IDError) Error() string {
	return fmt.Sprintf("cm: %s: no connection has id %v, or its end has been reported", e.Command, e.ID)
}

// Unwrap returns [ErrUnknown].
func (e *IDError) Unwrap() error { return ErrUnknown }

// LimitError says which limit of [Config] is reached. It unwraps to [ErrLimit].
type LimitError struct {
	Limit string // the field of Config
	Max   int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("cm: %s is %d and reached: close connections or raise it", e.Limit, e.Max)
}

// Unwrap returns [ErrLimit].
func (e *LimitError) Unwrap() error { return ErrLimit }

// EndError says how a connection or SIDR exchange ended. It unwraps to
// [ErrRejected], [ErrUnreachable] or [ErrDisconnected].
type EndError struct {
	Event Event
}

func (e *EndError) Error() string {
	ev := &e.Event
	s := fmt.Sprintf("%v: %v", e.Unwrap(), ev.Peer)
	if ev.Local {
		s += ", by this side"
	}
	if ev.Reason != 0 {
		s += ": " + ev.Reason.String()
	}
	if ev.Kind == EventSIDRReply {
		s += ": " + ev.Status.String()
	}
	return s
}

// Unwrap returns the sentinel.
func (e *EndError) Unwrap() error {
	switch e.Event.Kind {
	case EventRejected, EventSIDRReply:
		return ErrRejected
	case EventUnreachable:
		return ErrUnreachable
	default:
		return ErrDisconnected
	}
}

// ListenError says that somebody listens on a service id already. It unwraps to
// [ErrListening].
type ListenError struct {
	Service ServiceID
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("cm: somebody listens on %v already: close that listener or take another port", e.Service)
}

// Unwrap returns [ErrListening].
func (e *ListenError) Unwrap() error { return ErrListening }
