package hixl

import (
	"container/heap"
	"sync"

	"github.com/gohixl/hixl/internal/mono"
)

// peerTimers holds peers by the time at which the dispatcher is to look after them.
// Its lock is a leaf.
type peerTimers struct {
	mu   sync.Mutex
	heap peerHeap // guarded by mu, as alarm and place of its members
	seq  uint64
}

// alarm is a peer's entry.
type alarm struct {
	at    mono.Time // 0: none
	seq   uint64    // of setting; breaks ties, so that runs replay
	place int
}

// set moves p's time, 0 takes it out, and reports whether it is the earliest now.
func (t *peerTimers) set(p *Peer, at mono.Time) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &p.alarm
	if a.at == at {
		return false
	}
	t.seq++
	a.seq = t.seq
	switch was := a.at; {
	case at.IsZero():
		heap.Remove(&t.heap, a.place)
		a.at = 0
	case was.IsZero():
		a.at = at
		heap.Push(&t.heap, p)
	default:
		a.at = at
		heap.Fix(&t.heap, a.place)
	}
	return len(t.heap) > 0 && t.heap[0] == p
}

// by sets p's time to at, unless it is earlier, and reports whether it is the
// earliest now.
func (t *peerTimers) by(p *Peer, at mono.Time) (first bool) {
	t.mu.Lock()
	was := p.alarm.at
	t.mu.Unlock()
	if !was.IsZero() && !at.Before(was) {
		return false
	}
	return t.set(p, at)
}

// due takes out a peer whose time has come, or returns nil.
func (t *peerTimers) due(now mono.Time) *Peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 || now.Before(t.heap[0].alarm.at) {
		return nil
	}
	p := heap.Pop(&t.heap).(*Peer)
	p.alarm.at = 0
	return p
}

func (t *peerTimers) next() mono.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].alarm.at
}

type peerHeap []*Peer

func (h peerHeap) Len() int { return len(h) }

func (h peerHeap) Less(i, j int) bool {
	a, b := &h[i].alarm, &h[j].alarm
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}

func (h peerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].alarm.place, h[j].alarm.place = i, j
}

func (h *peerHeap) Push(x any) {
	p := x.(*Peer)
	p.alarm.place = len(*h)
	*h = append(*h, p)
}

func (h *peerHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}
