package cm

import (
	"errors"
	"fmt"
)

// What the errors of decoding unwrap to.
var (
	// ErrLength: not the length that is asked for.
	ErrLength = errors.New("cm: wrong length")
	// ErrVersion: a version of a header that is not ours.
	ErrVersion = errors.New("cm: wrong version")
	// ErrClass: a MAD of another management class.
	ErrClass = errors.New("cm: not connection management")
	// ErrMethod: a method other than Send.
	ErrMethod = errors.New("cm: wrong method")
	// ErrAttribute: not the message that is asked for, or none that is known.
	ErrAttribute = errors.New("cm: wrong message")
)

// DecodeError says why bytes are not the message that was asked for. It unwraps
// to [ErrLength], [ErrVersion], [ErrClass], [ErrMethod] or [ErrAttribute].
type DecodeError struct {
	Reason    error
	Got, Want int // Want is 0 when several values were possible
}

func (e *DecodeError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("%v: %#x", e.Reason, e.Got)
	}
	if errors.Is(e.Reason, ErrLength) {
		return fmt.Sprintf("%v: %d bytes, must be %d", e.Reason, e.Got, e.Want)
	}
	return fmt.Sprintf("%v: %#x, must be %#x", e.Reason, e.Got, e.Want)
}

// Unwrap returns the sentinel.
func (e *DecodeError) Unwrap() error { return e.Reason }
