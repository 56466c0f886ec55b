package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// patience is how long a timed part may go without one completion. It is longer
// than an engine's retries take, whose error says more.
const patience = 25 * time.Second

// watch ends the context that it returns when progress stands still for
// patience. stop ends the watching and waits for it.
func watch(ctx context.Context, progress *atomic.Uint64) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(patience / 25)
		defer ticker.Stop()
		last, since := progress.Load(), time.Now()
		for {
			select {
			case <-watched.Done():
				return
			case now := <-ticker.C:
				if n := progress.Load(); n != last {
					last, since = n, now
				} else if now.Sub(since) > patience {
					cancel(fmt.Errorf("nothing completed for %v, after %d messages", patience, last))
				}
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
