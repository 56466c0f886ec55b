package mr

import (
	"errors"
	"fmt"
)

// Sentinels to test for with errors.Is.
var (
	// ErrKey: no region has this key: never given out, or of a region that is gone.
	ErrKey = errors.New("mr: unknown key")
	// ErrRevoked: the region is being deregistered or its rkey was invalidated.
	ErrRevoked = errors.New("mr: key revoked")
	// ErrPD: the region belongs to another protection domain.
	ErrPD = errors.New("mr: region of another protection domain")
	// ErrPermission: the region does not grant this access.
	ErrPermission = errors.New("mr: access not granted")
	// ErrBounds: the bytes are not all within the region or memory.
	ErrBounds = errors.New("mr: out of bounds")
	// ErrAccessFlags: a set of access flags that cannot be granted.
	ErrAccessFlags = errors.New("mr: access flags cannot be granted")
	// ErrIOVA: a remote base address that cannot be used.
	ErrIOVA = errors.New("mr: iova cannot be used")
	// ErrTooMany: the table is full.
	ErrTooMany = errors.New("mr: too many regions")
	// ErrBusy: regions or queue pairs still live in the domain, or spans are lent.
	ErrBusy = errors.New("mr: still in use")
	// ErrPDClosed: the protection domain was deallocated.
	ErrPDClosed = errors.New("mr: protection domain is deallocated")
	// ErrConfig: a Config value out of its range.
	ErrConfig = errors.New("mr: configuration out of range")
)

// RegisterError tells why a region cannot be registered. It unwraps to a
// sentinel: ErrBounds, ErrAccessFlags, ErrIOVA or ErrTooMany.
type RegisterError struct {
	What    string // what was given
	Allowed string // what is allowed
	Advice  string // what to do

	sentinel error
}

// Error says what was given, what is allowed and what to do.
func (e *RegisterError) Error() string {
	return fmt.Sprintf("mr: cannot register with %s; allowed: %s; %s", e.What, e.Allowed, e.Advice)
}

// Unwrap returns the sentinel.
func (e *RegisterError) Unwrap() error { return e.sentinel }

// DeregisterError tells that Deregister gave up waiting. The keys are revoked;
// calling Deregister again waits again. It unwraps to ErrBusy and to the
// context's error.
type DeregisterError struct {
	Lent int   // spans still lent when it gave up
	Err  error // the context's
}

// Error says what is still going on and what to do.
func (e *DeregisterError) Error() string {
	return fmt.Sprintf("mr: region is revoked but %d transfers still use its memory (%v); "+
		"keep the memory and call Deregister again", e.Lent, e.Err)
}

// Unwrap returns ErrBusy and the context's error.
func (e *DeregisterError) Unwrap() []error { return []error{ErrBusy, e.Err} }
