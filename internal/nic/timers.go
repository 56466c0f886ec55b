package nic

import (
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/internal/mono"
)

// timers is a heap of queue pairs by the time at which they are looked at again.
// Arming is lazy: a deadline that moves later, as it does with every ACK, leaves
// the entry where it is, and the look that comes too early sets it anew. A queue
// pair with nothing outstanding falls out at its next look, so idle ones cost
// nothing.
type timers struct {
	mu   sync.Mutex
	heap []*Queue // guarded by mu, as armed and pos of its members

	first atomic.Int64 // mono.Time of the earliest, 0: none; set under mu
}

// arm sees to it that q is looked at no later than at, which may be 0 for never,
// and reports whether the heap's earliest time has become earlier. Called with
// q's lock held.
func (t *timers) arm(q *Queue, at mono.Time) (earlier bool) {
	if at.IsZero() {
		return false
	}
	// A look that runs at this moment ends in an arm of its own.
	if set := mono.Time(q.armed.Load()); !set.IsZero() && !at.Before(set) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.armed.Swap(int64(at)) == 0 {
		q.pos = len(t.heap)
		t.heap = append(t.heap, q)
	}
	t.up(q.pos)
	t.note()
	return t.heap[0] == q
}

// next returns the earliest time, 0 when there is none.
func (t *timers) next() mono.Time { return mono.Time(t.first.Load()) }

// note keeps the earliest time where next finds it. mu is held.
func (t *timers) note() {
	first := int64(0)
	if len(t.heap) > 0 {
		first = t.heap[0].armed.Load()
	}
	t.first.Store(first)
}

// due removes the queue pairs whose time has come and appends them to out.
func (t *timers) due(now mono.Time, out []*Queue) []*Queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && !now.Before(mono.Time(t.heap[0].armed.Load())) {
		out = append(out, t.heap[0])
		t.removeAt(0)
	}
	t.note()
	return out
}

// drop removes q for good.
func (t *timers) drop(q *Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.armed.Load() != 0 {
		t.removeAt(q.pos)
		t.note()
	}
}

func (t *timers) removeAt(i int) {
	last := len(t.heap) - 1
	t.heap[i].armed.Store(0)
	if i != last {
		t.set(i, t.heap[last])
	}
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if i != last {
		t.down(i)
		t.up(i)
	}
}

func (t *timers) set(i int, q *Queue) { t.heap[i], q.pos = q, i }

func (t *timers) before(i, j int) bool { return t.heap[i].armed.Load() < t.heap[j].armed.Load() }

func (t *timers) swap(i, j int) {
	a, b := t.heap[i], t.heap[j]
	t.set(i, b)
	t.set(j, a)
}

func (t *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(i, parent) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *timers) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}
