package hixl

import (
	"context"
	"slices"

	"github.com/gohixl/hixl/internal/mono"
)

func (s *Stream) event() *StreamEvent { return &StreamEvent{c: s.c, done: make(chan struct{})} }

// Done returns a channel that is closed when the event has come.
func (e *StreamEvent) Done() <-chan struct{} { return e.done }

// Query reports whether the event has come.
func (e *StreamEvent) Query() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Wait waits for the event and returns its error, see Err; or that of ctx.
func (e *StreamEvent) Wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.Err()
	case <-ctx.Done():
	}
	if e.Query() {
		return e.Err()
	}
	return ctx.Err()
}

// Err returns nil until the event has come, then why its stream had failed by then, or
// what the function of Call has returned.
func (e *StreamEvent) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Time returns when the event came, on the clock of its context's NIC, so that two of
// them tell how long what was between them took.
func (e *StreamEvent) Time() (at Time, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at, !e.at.IsZero()
}

// query is Query for a stream that wants to be told.
func (e *StreamEvent) query(s *Stream) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() && !slices.Contains(e.waits, s) {
		e.waits = append(e.waits, s)
	}
	return !e.at.IsZero()
}

// come makes the event come.
func (e *StreamEvent) come(now mono.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at, e.err = max(now, 1), err
	close(e.done)
	for _, s := range e.waits {
		s.c.attendStream(s)
	}
	e.waits = nil
}
