package nic

import (
	"runtime"
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Progress handles one batch of packets if nobody else is receiving, and reports
// whether there was one. It is the hook for completion queues.
func (n *NIC) Progress() bool {
	n.polls.Add(1)
	if !n.rx.mu.TryLock() {
		return false
	}
	got, err := n.rx.poll(n.clock)
	n.rx.mu.Unlock()
	if err != nil && !passing(err) {
		n.stopped(err)
	}
	return got > 0
}

// Patience lets a waiter look again, try times so far, rather than park. It yields
// first, to goroutines of this process and to other processes: two that spin on
// one processor would wait for each other's whole time slices.
func (n *NIC) Patience(try int) bool {
	if n.look(try) {
		return true
	}
	select {
	case n.resume <- struct{}{}:
	default:
	}
	return false
}

func (n *NIC) look(try int) bool {
	if try >= tries[n.cfg.Progress] {
		return false
	}
	runtime.Gosched()
	n.yield()
	return true
}

// A yield to another thread that computes lasts for its whole time slice, and no
// goroutine can use the processor that it gives away. After one that took longer
// than longYield, none is tried for restYields times as long: the process or the
// machine has something better to do.
const (
	longYield  = 500 * time.Microsecond
	restYields = 16
)

func (n *NIC) yield() {
	before := n.clock()
	if before < mono.Time(n.noYield.Load()) {
		return
	}
	yield()
	if took := n.clock().Sub(before); took > longYield {
		n.noYield.Store(int64(before.Add(restYields * took)))
	}
}

// restFor is how long the receive goroutine leaves the transport to an
// application that was just looking there itself.
const restFor = 100 * time.Microsecond

// rest returns when no application looks for packets any more. Waiting for them as
// well would cost a wake-up each, on a processor that the application or its peer
// could use. timer is the receive goroutine's, not running.
func (n *NIC) rest(timer *time.Timer) {
	for polls := n.polls.Load(); polls != n.rested; polls = n.polls.Load() {
		n.rested = polls
		timer.Reset(restFor)
		select {
		case <-timer.C:
			continue
		case <-n.resume:
			n.rested = n.polls.Load()
		case <-n.quit:
		}
		timer.Stop()
		return
	}
}
