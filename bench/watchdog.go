package bench

import (
	"context"
	"time"
)

// patience is how long a timed part may stand still. It is longer than an engine's
// retries take, whose error says more.
const patience = 25 * time.Second

// mark is how far a cell has come. Packets that were sent, or came in vain, are not in
// it: those of a connection that is stuck go on and on.
type mark struct {
	messages uint64 // completed
	packets  uint64 // acknowledged or answered; with heavy loss a message takes long, and many retries
}

// watchdog compares marks that are taken now and then. Time is an argument.
type watchdog struct {
	last  mark
	since time.Time // when last was new
}

// see returns a *[StallError] when m has been the same for longer than patience.
func (w *watchdog) see(now time.Time, m mark) error {
	if m != w.last {
		w.last, w.since = m, now
		return nil
	}
	if still := now.Sub(w.since); still > patience {
		return &StallError{For: still, Messages: m.messages, Packets: m.packets}
	}
	return nil
}

// watch ends the context that it returns when what moved returns stands still for
// patience. stop ends the watching and waits for it.
func watch(ctx context.Context, moved func() mark) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(patience / 25)
		defer ticker.Stop()
		dog := watchdog{last: moved(), since: time.Now()}
		for {
			select {
			case <-watched.Done():
				return
			case now := <-ticker.C:
				if err := dog.see(now, moved()); err != nil {
					cancel(err)
				}
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
