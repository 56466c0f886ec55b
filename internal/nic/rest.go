package nic

import "time"

// rest is what the receive goroutine remembers from one rest to the next.
type rest struct {
	seen uint64 // polls when it last looked
}

// restFor is how long the receive goroutine leaves the transport to an
// application that was just looking there itself.
const restFor = 100 * time.Microsecond

// leave returns when no application looks for packets any more. Waiting for them
// as well would cost a wake-up each, on a processor that the application or its
// peer could use. timer is the receive goroutine's, not running.
func (r *receiver) leave(timer *time.Timer) {
	for polls := r.polls.Load(); polls != r.rest.seen; polls = r.polls.Load() {
		r.rest.seen = polls
		timer.Reset(restFor)
		select {
		case <-timer.C:
			continue
		case <-r.resume:
			r.rest.seen = r.polls.Load()
		case <-r.nic.quit:
		}
		timer.Stop()
		return
	}
}
