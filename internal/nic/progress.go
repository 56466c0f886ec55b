package nic

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
)

// Driver is what completion queues drive: the receivers of the queue pairs that
// complete in one, so that who waits for them does not take part in other work. It
// is a cq.Driver.
type Driver struct {
	nic  *NIC
	mine atomic.Uint64 // bit i: receiver i
}

// NewDriver makes the driver of one completion queue. A queue pair that is made
// afterwards is added if it completes there.
func (n *NIC) NewDriver() *Driver { return &Driver{nic: n} }

// Add adds the receiver of a queue pair of the same NIC.
func (d *Driver) Add(q *Queue) { d.mine.Or(1 << q.rx.index) }

// drivenBy has who waits on a sink, if it is a queue with a driver of this NIC,
// receive for q.
func (q *Queue) drivenBy(sink cq.Sink) {
	c, ok := sink.(*cq.Queue)
	if !ok {
		return
	}
	if d, ok := c.Driver().(*Driver); ok && d.nic == q.nic {
		d.Add(q)
	}
}

// Progress handles one batch of packets of each receiver that nobody else is at,
// and reports whether there was one.
func (n *NIC) Progress() (worked bool) {
	for _, r := range n.rx {
		worked = r.progress() || worked
	}
	return worked
}

// Progress handles one batch of packets of each receiver of the queue that nobody
// else is at, and reports whether there was one.
func (d *Driver) Progress() (worked bool) {
	for left := d.mine.Load(); left != 0; left &= left - 1 {
		worked = d.nic.rx[bits.TrailingZeros64(left)].progress() || worked
	}
	return worked
}

func (r *receiver) progress() bool {
	r.polls.Add(1)
	if !r.mu.TryLock() {
		return false
	}
	if r.napping() {
		r.mu.Unlock()
		return false
	}
	got, err := r.poll(r.nic.clock)
	if got > 0 && !r.full {
		r.naps()
	}
	r.mu.Unlock()
	if err != nil && !passing(err) {
		r.nic.stopped(err)
	}
	return got > 0
}

// Patience lets a waiter look again, try times so far, rather than park. It yields
// first, to goroutines of this process and to other processes: two that spin on
// one processor would wait for each other's whole time slices.
//
// Until a timer that is about to fire has fired, it looks on whatever the number of
// tries, and fires it: between a packet that was lost and the next sign of life of
// its connection there is nothing but that timer, and a sleeping process would be
// told of it a millisecond late.
func (d *Driver) Patience(try int) bool {
	if d.napping() {
		d.nic.nap(gatherFor)
		return true
	}
	if d.nic.look(try) {
		if try%switchEach == switchEach-1 {
			d.expires()
		}
		return true
	}
	if d.expires() {
		d.nic.giveWay(try)
		return true
	}
	for left := d.mine.Load(); left != 0; left &= left - 1 {
		select {
		case d.nic.rx[bits.TrailingZeros64(left)].resume <- struct{}{}:
		default:
		}
	}
	return false
}

// napping reports whether all receivers nap: while one does not, what comes by it is
// not to wait for the others. In the mode that saves time the waiter parks instead.
func (d *Driver) napping() bool {
	left := d.mine.Load()
	if left == 0 || d.nic.cfg.Progress == LowCPU {
		return false
	}
	for ; left != 0; left &= left - 1 {
		if !d.nic.rx[bits.TrailingZeros64(left)].napping() {
			return false
		}
	}
	return true
}

// soon is how far ahead the end of a timer is waited for awake.
const soon = 500 * time.Microsecond

// expires reports whether one of the receivers' timers is about to fire or has fired,
// in which case it does what there is to do. In the mode that saves time nobody waits
// for that.
func (d *Driver) expires() bool {
	n := d.nic
	if n.cfg.Progress == LowCPU || n.closing.Load() {
		return false
	}
	var next mono.Time
	for left := d.mine.Load(); left != 0; left &= left - 1 {
		next = mono.Earliest(next, n.rx[bits.TrailingZeros64(left)].timers.next())
	}
	if next.IsZero() {
		return false
	}
	now := n.clock()
	if !now.Before(next) && n.svcMu.TryLock() {
		if !n.closing.Load() { // Close frees what is used here, under this lock
			n.fire(now, n.clock, postPatience)
		}
		n.svcMu.Unlock()
	}
	return next.Sub(now) < soon
}

func (n *NIC) look(try int) bool {
	if try >= tries[n.cfg.Progress] {
		return false
	}
	n.giveWay(try)
	return true
}

// giveWay lets others have the processor for a moment, at some of the tries.
func (n *NIC) giveWay(try int) {
	if try%switchEach == 0 {
		runtime.Gosched()
	}
	if try%yieldEach == 0 {
		n.yield()
	}
}

// switchEach is how many tries pass between two switches to other goroutines, and
// yieldEach between two to other threads. The first try makes both, since nothing
// can have come yet. A switch costs as much as a look, so each between two looks
// would have packets wait. The runtime has other processors for goroutines, if it has
// any, and each switch makes it wake one to look for work, in the way of whoever else
// could use it.
const (
	switchEach = 16
	yieldEach  = 4
)

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
