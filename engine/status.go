package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gohixl/hixl"
)

// Status is a status code, with the number that HIXL gives it.
type Status uint32

// The status codes.
const (
	StatusSuccess Status = 0
	// StatusParamInvalid: an argument or an option is wrong. Nothing was done.
	StatusParamInvalid Status = 103900
	// StatusTimeout: it was not done in time. The link cannot be used any more:
	// Disconnect, and Connect again.
	StatusTimeout Status = 103901
	// StatusNotConnected: there is no link to that engine.
	StatusNotConnected Status = 103902
	// StatusAlreadyConnected: there is a link already, working or not.
	StatusAlreadyConnected Status = 103903
	// StatusNotifyFailed is reserved and not returned.
	StatusNotifyFailed Status = 103904
	// StatusUnsupported: sound, but not to be had here.
	StatusUnsupported Status = 103905
	// StatusResourceExhausted: a queue or a limit is full. Try again later.
	StatusResourceExhausted Status = 203900
	// StatusFailed: everything else.
	StatusFailed Status = 503900
)

var statusNames = map[Status]string{
	StatusSuccess: "SUCCESS", StatusParamInvalid: "PARAM_INVALID", StatusTimeout: "TIMEOUT", StatusNotConnected: "NOT_CONNECTED",
	StatusAlreadyConnected: "ALREADY_CONNECTED", StatusNotifyFailed: "NOTIFY_FAILED", StatusUnsupported: "UNSUPPORTED",
	StatusResourceExhausted: "RESOURCE_EXHAUSTED", StatusFailed: "FAILED",
}

// String returns HIXL's name of the code, such as PARAM_INVALID.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("Status(%d)", uint32(s))
}

// Errors to test for with errors.Is: each stands for its code.
var (
	ErrParamInvalid      = &StatusError{Status: StatusParamInvalid}
	ErrTimeout           = &StatusError{Status: StatusTimeout}
	ErrNotConnected      = &StatusError{Status: StatusNotConnected}
	ErrAlreadyConnected  = &StatusError{Status: StatusAlreadyConnected}
	ErrUnsupported       = &StatusError{Status: StatusUnsupported}
	ErrResourceExhausted = &StatusError{Status: StatusResourceExhausted}
	ErrFailed            = &StatusError{Status: StatusFailed}
)

// StatusError is a call that failed. All errors of this package are of this type.
// It unwraps to Err, which for what happened below is an error of package hixl, so
// that errors.Is(err, hixl.ErrUnfenced) works.
type StatusError struct {
	Status Status
	// Op is the call, Remote the engine it was about, "" for none.
	Op, Remote string
	Err        error
}

// Error says which call failed for which engine, the code by name and number, and why.
func (e *StatusError) Error() string {
	var b strings.Builder
	b.WriteString("engine: ")
	if e.Op != "" {
		b.WriteString(e.Op)
		if e.Remote != "" {
			fmt.Fprintf(&b, " %s", e.Remote)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%v (%d)", e.Status, uint32(e.Status))
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *StatusError) Unwrap() error { return e.Err }

// Is reports whether target stands for the same code, as [ErrTimeout] and the
// others do.
func (e *StatusError) Is(target error) bool {
	t, ok := target.(*StatusError)
	return ok && t.Op == "" && t.Err == nil && t.Status == e.Status
}

// StatusOf returns the code of an error: [StatusSuccess] of nil, [StatusFailed] of
// one of another package.
func StatusOf(err error) Status {
	var e *StatusError
	switch {
	case err == nil:
		return StatusSuccess
	case errors.As(err, &e):
		return e.Status
	}
	return StatusFailed
}

// fault is a reason with its code; the call adds its name.
func fault(s Status, format string, args ...any) *StatusError {
	return &StatusError{Status: s, Err: fmt.Errorf(format, args...)}
}

func invalid(format string, args ...any) error { return fault(StatusParamInvalid, format, args...) }

func unsupported(format string, args ...any) error { return fault(StatusUnsupported, format, args...) }

// fail makes err the error of a call.
func fail(op, remote string, err error) error {
	if err == nil {
		return nil
	}
	e := &StatusError{Status: classify(err), Op: op, Remote: remote, Err: err}
	if f, ok := err.(*StatusError); ok && f.Op == "" { //nolint:errorlint // only a fault of this package, not wrapped
		e.Err = f.Err
	}
	return e
}

// classify finds the code of what package hixl reports.
func classify(err error) Status {
	var e *StatusError
	var region *hixl.RegionError
	switch {
	case errors.As(err, &e):
		return e.Status
	case errors.Is(err, hixl.ErrBusy), errors.Is(err, hixl.ErrNotifyFull), errors.Is(err, hixl.ErrTooManyPeers):
		return StatusResourceExhausted
	case errors.Is(err, context.DeadlineExceeded):
		return StatusTimeout
	case errors.Is(err, hixl.ErrTransfer), errors.Is(err, hixl.ErrConfig):
		return StatusParamInvalid
	case errors.As(err, &region):
		return StatusParamInvalid
	}
	return StatusFailed
}
