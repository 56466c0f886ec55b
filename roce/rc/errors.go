package rc

import (
	"errors"
	"fmt"
)

// Errors of Post.
var (
	// ErrSendQueueFull: as many work requests are outstanding as the send queue
	// holds. Take completions and post again.
	ErrSendQueueFull = errors.New("rc: send queue is full")
	// ErrRequest is what every *RequestError unwraps to.
	ErrRequest = errors.New("rc: work request cannot be carried out")
)

// RequestError says why a work request was refused.
type RequestError struct {
	Op     Op
	Reason string
	// Got and Max are the offending number and its limit, if Max is not 0.
	Got, Max uint64
}

func (e *RequestError) Error() string {
	if e.Max == 0 {
		return fmt.Sprintf("rc: %s refused: %s", e.Op, e.Reason)
	}
	return fmt.Sprintf("rc: %s refused: %s: %d given, at most %d allowed", e.Op, e.Reason, e.Got, e.Max)
}

// Unwrap returns [ErrRequest].
func (e *RequestError) Unwrap() error { return ErrRequest }
