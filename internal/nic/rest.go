package nic

import "time"

// rest is what the receive goroutine remembers from one rest to the next.
type rest struct {
	seen uint64        // polls when it last looked
	span time.Duration // of the next look
	skip int           // how often it does not rest
}

// Limits of a rest. Where an application goes on looking, there is the less reason
// to see whether it does, each time at the cost of a wake-up.
const (
	restFor  = 100 * time.Microsecond
	restMost = time.Millisecond
	// restSkip is for how many batches no rest follows one in which a packet came
	// that nobody looked for, as when an application waits for a word in its memory
	// to change.
	restSkip = 64
)

// leave returns when no application looks for packets any more: to wait for them as
// well would cost a wake-up each, on a processor that the application or its peer
// could use. It reports whether that was found out rather than told, in which case
// packets may be waiting. timer is the receive goroutine's, not running.
func (r *receiver) leave(timer *time.Timer) (unheard bool) {
	s := &r.rest
	if r.nic.cfg.Progress == LowCPU || s.skip > 0 { // in that mode applications park
		s.skip = max(s.skip-1, 0)
		s.seen = r.polls.Load()
		return false
	}
	s.span = restFor
	for polls := r.polls.Load(); polls != s.seen; polls = r.polls.Load() {
		s.seen = polls
		timer.Reset(s.span)
		told := true
		select {
		case <-timer.C:
			told = r.told()
		case <-r.resume:
		case <-r.nic.quit:
		}
		if told {
			s.seen = r.polls.Load()
			timer.Stop()
			return false
		}
		s.span = min(2*s.span, restMost)
		unheard = true
	}
	return unheard
}

// told reports whether the application has told that it looks no more, or the NIC
// closes: news that came together with the end of a rest.
func (r *receiver) told() bool {
	select {
	case <-r.resume:
	case <-r.nic.quit:
	default:
		return false
	}
	return true
}

// late handles what came while the receive goroutine rested and nobody looked.
func (r *receiver) late() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got, _ := r.poll(r.nic.clock); got > 0 { // an error comes again
		r.rest.skip = restSkip
	}
}
