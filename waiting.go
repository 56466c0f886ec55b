package hixl

import (
	"context"
	"slices"
	"sync"
)

// waiting is what has come to a listener and nobody has taken.
type waiting[T comparable] struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change; guarded by mu, as all below
	queue   []T
	err     error // why the listener is closed
}

// wake lets those who wait look again. w.mu is held.
func (w *waiting[T]) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// take waits for the next one. A context that has ended makes it a poll.
func (w *waiting[T]) take(ctx context.Context) (v T, err error) {
	for {
		w.mu.Lock()
		if len(w.queue) > 0 {
			v, w.queue = w.queue[0], w.queue[1:]
			w.mu.Unlock()
			return v, nil
		}
		err, changed := w.err, w.changed
		w.mu.Unlock()
		if err := awaitChange(ctx, err, changed); err != nil {
			return v, err
		}
	}
}

// awaitChange waits for a change, of a listener that is closed for the reason err,
// if any.
func awaitChange(ctx context.Context, err error, changed <-chan struct{}) error {
	if err != nil {
		return err
	}
	select {
	case <-changed:
		return nil
	default:
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add queues one more and tells of it, with w.mu held; false if there is no room or
// the listener is closed.
func (w *waiting[T]) add(v T, room int, tell func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || len(w.queue) >= room {
		return false
	}
	w.queue = append(w.queue, v)
	w.wake()
	if tell != nil {
		tell()
	}
	return true
}

// remove forgets one that has gone.
func (w *waiting[T]) remove(v T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queue, v); i >= 0 {
		w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
	}
}

// end closes for a reason, unless it is closed, and returns what is left. w.mu is
// held.
func (w *waiting[T]) end(err error) (rest []T) {
	if w.err != nil {
		return nil
	}
	rest, w.queue, w.err = w.queue, nil, err
	w.wake()
	return rest
}
