package sim

import (
	"context"
	"errors"
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// ErrRunning is returned by Run when the network is being run already.
var ErrRunning = errors.New("sim: network is running already")

// Now returns the virtual time.
func (n *Network) Now() mono.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp()
	return n.now
}

// Next returns the virtual time of the next arrival, or 0 when nothing is in
// flight. It may equal Now.
func (n *Network) Next() mono.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next()
}

func (n *Network) next() mono.Time {
	if len(n.events) == 0 {
		return 0
	}
	return n.events[0].at
}

// Advance moves virtual time to to and puts all packets due by then into the
// receive queues, in the order of their arrival. Going back is ignored. While
// Run drives the network it does nothing.
func (n *Network) Advance(to mono.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.live {
		n.advance(to)
	}
}

func (n *Network) advance(to mono.Time) {
	for len(n.events) > 0 && n.events[0].at <= to {
		e := n.events.pop()
		n.now = max(n.now, e.at)
		n.arrive(e)
	}
	n.now = max(n.now, to)
}

// Run lets virtual time pass with the clock until ctx ends, and returns its
// error. It starts no goroutine of its own; in a testing/synctest bubble the
// clock is the bubble's.
func (n *Network) Run(ctx context.Context) error {
	n.mu.Lock()
	if n.live {
		n.mu.Unlock()
		return ErrRunning
	}
	n.live, n.begin, n.base = true, time.Now(), n.now
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.catchUp()
		n.live = false
		n.mu.Unlock()
	}()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-n.kick:
		}
		n.mu.Lock()
		n.catchUp()
		wait := time.Hour
		if next := n.next(); next != 0 {
			wait = next.Sub(n.now)
		}
		n.mu.Unlock()
		timer.Reset(wait)
	}
}

// catchUp brings virtual time to the clock's when the network is live, so that
// whoever touches it makes progress without waiting for Run.
func (n *Network) catchUp() {
	if n.live {
		n.advance(n.base.Add(time.Since(n.begin)))
	}
}

// wake tells Run that the next event may be earlier than it thinks.
func (n *Network) wake() {
	if !n.live {
		return
	}
	select {
	case n.kick <- struct{}{}:
	default:
	}
}
