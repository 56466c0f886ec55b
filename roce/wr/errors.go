package wr

import (
	"errors"
	"fmt"
)

// Errors of posting.
var (
	// ErrSendQueueFull: as many work requests are outstanding as the send queue
	// holds. Take completions and post again.
	ErrSendQueueFull = errors.New("wr: send queue is full")
	// ErrRequest is what every *RequestError unwraps to.
	ErrRequest = errors.New("wr: work request cannot be carried out")
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
		return fmt.Sprintf("wr: %s refused: %s", e.Op, e.Reason)
	}
	return fmt.Sprintf("wr: %s refused: %s: %d given, at most %d allowed", e.Op, e.Reason, e.Got, e.Max)
}

// Unwrap returns [ErrRequest].
func (e *RequestError) Unwrap() error { return ErrRequest }

// Check checks what does not depend on the transport and returns the message's
// length in bytes; spans is the largest number of them. The error is a
// *[RequestError].
func (r *Request) Check(spans int) (uint64, error) {
	if r.Op >= NumOps {
		return 0, &RequestError{Op: r.Op, Reason: "no such operation"}
	}
	if len(r.Spans) > spans {
		return 0, &RequestError{r.Op, "too many scatter/gather entries", uint64(len(r.Spans)), uint64(spans)}
	}
	n, inline := r.Length()
	if inline && n > MaxInline {
		return 0, &RequestError{r.Op, "inline data too long", n, MaxInline}
	}
	if inline && r.Op.TakesRead() && r.Op != OpAtomicWrite {
		return 0, &RequestError{Op: r.Op, Reason: "its result cannot be inline"}
	}
	if n > MaxMessage {
		return 0, &RequestError{r.Op, "message too long", n, MaxMessage}
	}
	if r.Op.Atomic() && n != 8 {
		return 0, &RequestError{Op: r.Op, Reason: fmt.Sprintf("its local buffer has %d bytes, allowed: 8", n)}
	}
	return n, nil
}
