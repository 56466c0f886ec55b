package cq

import "context"

// Wait takes up to len(out) completions like Poll, and when there are none runs
// the driver for as long as it finds work and then blocks until there is
// one. It returns the context's error when that ends first, an *OverrunError or
// ErrClosed like Poll, and ErrNoRoom for an empty slice. Several goroutines may
// wait; a completion wakes one of them, the longest waiting first.
func (q *Queue) Wait(ctx context.Context, out []Completion) (int, error) {
	if len(out) == 0 {
		return 0, ErrNoRoom
	}
	for try := 0; ; {
		n, err := q.take(out)
		if n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if q.makeProgress() {
			try = 0
			continue
		}
		if q.patient(try) {
			try++
			continue
		}
		n, w, err := q.takeOrJoin(out)
		if w == nil {
			return n, err
		}
		select {
		case <-w.wake:
			q.leave(w)
		case <-ctx.Done():
			q.abandon(w)
		}
		try = 0
	}
}

// takeOrJoin takes completions or, when there are none and may yet be some,
// joins the waiters, in one step so that no wake is missed.
func (q *Queue) takeOrJoin(out []Completion) (int, *waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, err := q.takeLocked(out)
	if n > 0 || err != nil {
		return n, nil, err
	}
	return 0, q.wait.join(), nil
}

// leave returns a waiter that was woken.
func (q *Queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait.put(w)
}

// abandon takes back a waiter whose context ended. If it was woken at the same
// moment, the wake is for a completion that nobody else hears of; Wait looks
// once more before it gives up, and so takes it.
func (q *Queue) abandon(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wait.remove(w) {
		<-w.wake // was sent under mu before the removal from the list
	}
	q.wait.put(w)
}

// waiter is one parked goroutine.
type waiter struct {
	wake       chan struct{} // capacity 1
	next, prev *waiter
}

// waitList is who is parked, longest first, and spare waiters. The queue's lock
// guards it. Nobody joins while completions wait, each completion wakes one, and
// whoever was woken takes at least one if there is one: so none waits unheard.
type waitList struct {
	first, last *waiter
	spare       *waiter
}

// join appends a waiter.
func (l *waitList) join() *waiter {
	w := l.spare
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1)}
	} else {
		l.spare = w.next
	}
	w.next, w.prev = nil, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	return w
}

// remove takes w off the list; false if it was woken and so is off already.
func (l *waitList) remove(w *waiter) bool {
	if w.prev == nil && l.first != w {
		return false
	}
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	return true
}

// put keeps w, which is on no list, for the next join.
func (l *waitList) put(w *waiter) {
	w.prev, w.next = nil, l.spare
	l.spare = w
}

// wakeOne wakes the longest waiting.
func (l *waitList) wakeOne() {
	if w := l.first; w != nil {
		l.remove(w)
		w.wake <- struct{}{} // room for one, and only one is ever sent
	}
}

func (l *waitList) wakeAll() {
	for l.first != nil {
		l.wakeOne()
	}
}
