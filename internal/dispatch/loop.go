package dispatch

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Loop runs a function on a goroutine of its own, until Stop.
type Loop struct {
	wake chan struct{} // capacity 1
	quit chan struct{}
	over chan struct{}
}

// Start begins a loop. run is called with the time of clock, and returns when it
// wants to be called without a Kick; 0 is never.
func Start(clock func() mono.Time, run func(now mono.Time) (next mono.Time)) *Loop {
	l := &Loop{wake: make(chan struct{}, 1), quit: make(chan struct{}), over: make(chan struct{})}
	go l.run(clock, run)
	return l
}

func (l *Loop) run(clock func() mono.Time, run func(mono.Time) mono.Time) {
	defer close(l.over)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := clock()
		if next := run(now); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(next.Sub(clock()), 0))
		}
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.quit:
			return
		}
	}
}

// Kick has the function run soon. It never blocks and may be called with any lock
// held, and after Stop.
func (l *Loop) Kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stop ends the goroutine and waits for it. It must be called once, and not by the
// function.
func (l *Loop) Stop() {
	close(l.quit)
	<-l.over
}
