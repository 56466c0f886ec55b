package tools

import (
	"bytes"
	"errors"
	"fmt"
)

// Sentinels to test for with errors.Is.
var (
	// ErrOption: an option that cannot work, alone or with the others.
	ErrOption = errors.New("tools: bad option")
	// ErrExchange: the exchange before or after the traffic failed.
	ErrExchange = errors.New("tools: exchange with the peer failed")
	// ErrSilent: the peer said nothing, or sent nothing, for too long.
	ErrSilent = errors.New("tools: the peer is silent")
	// ErrData: everything ran to its end, and what arrived is not what was sent.
	ErrData = errors.New("tools: wrong data")
	// ErrEnded: the connection ended before what was waited for.
	ErrEnded = errors.New("tools: the connection has ended")
)

// OptionError says which option cannot work, and what can. It unwraps to
// [ErrOption].
type OptionError struct {
	Option  string // with its dashes
	Value   any
	Allowed string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s %v cannot work: %s", e.Option, e.Value, e.Allowed)
}

// Unwrap returns [ErrOption].
func (e *OptionError) Unwrap() error { return ErrOption }

// ExchangeError says at which step an exchange failed. It unwraps to
// [ErrExchange] and to the reason.
type ExchangeError struct {
	Peer    string
	Step    string // what was being exchanged
	Problem string
	Err     error // may be nil
}

func (e *ExchangeError) Error() string {
	s := fmt.Sprintf("exchange with %s, %s: %s", e.Peer, e.Step, e.Problem)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns [ErrExchange] and the reason.
func (e *ExchangeError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrExchange}
	}
	return []error{ErrExchange, e.Err}
}

// DataError says what is wrong with the data. It unwraps to [ErrData].
type DataError struct {
	Where   string // which message or buffer
	Problem string
}

func (e *DataError) Error() string { return e.Where + ": " + e.Problem }

// Unwrap returns [ErrData].
func (e *DataError) Unwrap() error { return ErrData }

// CompareBytes returns a *[DataError] for the first byte in which got differs
// from want, or nil. Both have one length.
func CompareBytes(where string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i, b := range got {
		if b != want[i] {
			return &DataError{Where: where, Problem: fmt.Sprintf("byte %d of %d is %#02x, not %#02x", i, len(got), b, want[i])}
		}
	}
	return nil
}
