package engine

import (
	"context"
	"sync"
)

// tasks is a queue with those who work it off.
type tasks struct{ queue chan func() }

func (t *tasks) start(wg *sync.WaitGroup, ctx context.Context, threads, capacity int) {
	t.queue = make(chan func(), capacity)
	for range threads {
		wg.Go(func() {
			for {
				select {
				case f := <-t.queue:
					f()
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// add queues a task; false: there is no room.
func (t *tasks) add(f func()) bool {
	select {
	case t.queue <- f:
		return true
	default:
		return false
	}
}
