package cm

import (
	"container/heap"

	"github.com/gohixl/hixl/internal/mono"
)

// timer is one deadline of a connection or SIDR exchange.
type timer struct {
	at   mono.Time
	seq  uint64 // of arming; breaks ties, so that runs replay
	pos  int    // in the heap
	on   bool
	fire func(now mono.Time)
}

// timers holds the armed ones, the earliest first.
type timers struct {
	heap timerHeap
	seq  uint64
}

// arm sets or moves a timer.
func (t *timers) arm(x *timer, at mono.Time) {
	t.seq++
	x.at, x.seq = at, t.seq
	if x.on {
		heap.Fix(&t.heap, x.pos)
		return
	}
	x.on = true
	heap.Push(&t.heap, x)
}

// stop disarms a timer, which need not be armed.
func (t *timers) stop(x *timer) {
	if x.on {
		x.on = false
		heap.Remove(&t.heap, x.pos)
	}
}

// due takes the earliest timer if its time has come, otherwise returns nil.
func (t *timers) due(now mono.Time) *timer {
	if len(t.heap) == 0 || now.Before(t.heap[0].at) {
		return nil
	}
	x := t.heap[0]
	t.stop(x)
	return x
}

func (t *timers) next() mono.Time {
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.pos = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
