package nic

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
)

// Start begins the NIC's goroutines: one for each receive queue, and one. A NIC that was started is not polled.
func (n *NIC) Start() {
	lone := !n.conn.Caps().Lends
	gathers := n.cfg.Progress != LowLatency && n.conn.Caps().RxHolds >= gatherHolds
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.started || n.closing.Load() {
		return
	}
	n.started = true
	for _, r := range n.rx {
		r.mu.Lock()
		r.lone, r.gather.on = lone, gathers
		r.mu.Unlock()
		n.group.Go(r.run)
	}
	n.group.Go(n.serve)
}

// serve looks after timers and late memory until Close. With nothing to wait for
// it costs nothing.
func (n *NIC) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := n.clock()
		n.service(now, n.clock)
		n.attend(now)
		if next := n.Next(); !next.IsZero() {
			timer.Reset(max(next.Sub(now), 0))
		} else {
			timer.Stop()
		}
		select {
		case <-n.wake:
		case <-timer.C:
		case <-n.quit:
			return
		}
	}
}

// service deals with everything that is due and reports whether anything was. What is
// received meanwhile is received at the time of clock.
func (n *NIC) service(now mono.Time, clock func() mono.Time) bool {
	n.svcMu.Lock()
	defer n.svcMu.Unlock()
	return n.fire(now, clock, 0)
}

// fire is service with svcMu held, and with the patience of who calls it for what
// others add meanwhile.
func (n *NIC) fire(now mono.Time, clock func() mono.Time, patience int) bool {
	n.svc.patience = patience
	qs := n.due[:0]
	n.over = n.late.take(n.over[:0])
	for _, op := range n.over {
		q := op.q
		q.Lock()
		n.finish(now, op)
		q.Unlock()
		if k := len(qs); k == 0 || qs[k-1] != q {
			qs = append(qs, q)
		}
	}
	clear(n.over)
	fired := len(qs)
	for _, r := range n.rx {
		if next := r.timers.next(); !next.IsZero() && !now.Before(next) {
			r.hear(clock)
		}
		qs = r.timers.due(now, qs)
	}
	for _, q := range qs[fired:] {
		q.Lock()
		q.Expire(now)
		q.Unlock()
	}
	n.mu.Lock()
	qs = append(qs, n.deferred...)
	clear(n.deferred)
	n.deferred = n.deferred[:0]
	n.mu.Unlock()
	n.svc.flush(now, qs...)
	worked := len(qs) > 0
	clear(qs)
	n.due = qs[:0]
	return worked
}

// hearBatches bounds what is handled before timers fire.
const hearBatches = 16

// hear handles what has arrived before a timer fires for want of it: when this process
// had no processor, the answers wait in the receive buffer. Who else is at it handles
// them as well. A receiver whose nap is on has had a processor: just before, it took all
// that there was.
func (r *receiver) hear(clock func() mono.Time) {
	for full, try := true, 0; full && try < hearBatches && r.mu.TryLock(); try++ {
		full = false
		if !r.napping() {
			got, _ := r.poll(clock) // an error comes again
			full = got > 0 && r.full
		}
		r.mu.Unlock()
	}
}

// Poll lets a stepped NIC do what there is to do at now, without blocking: a batch of
// packets of each receiver, late memory, timers, and before a timer fires what else has
// come, up to 16 batches more of its receiver. It reports whether there was anything.
func (n *NIC) Poll(now mono.Time) (worked bool) {
	clock := func() mono.Time { return now }
	for _, r := range n.rx {
		r.mu.Lock()
		got, err := r.poll(clock)
		r.mu.Unlock()
		if err != nil && !passing(err) {
			n.stopped(err)
		}
		worked = worked || got > 0
	}
	worked = n.service(now, clock) || worked
	return n.attend(now) || worked
}

// Next returns when a stepped NIC wants to be polled next if no packet arrives
// before; 0 is never. It may be early.
func (n *NIC) Next() mono.Time {
	if n.late.waiting() || n.woken.Load() {
		return n.clock()
	}
	var next mono.Time
	for _, r := range n.rx {
		next = mono.Earliest(next, r.timers.next())
	}
	if a := n.attached.Load(); a != nil {
		next = mono.Earliest(next, a.Deadline())
	}
	return next
}

// Timing of Close.
const (
	closeWait = time.Second          // for late memory to finish
	closeStep = 2 * time.Millisecond // between two looks
)

// Close moves all queue pairs to the error state, flushes what is outstanding,
// closes the transport and waits for the goroutines. Work whose bytes are still
// on their way into late memory is waited for, up to a second. Closing twice is
// fine. Regions stay the application's to deregister.
func (n *NIC) Close() error {
	if n.closing.Swap(true) {
		<-n.quit
		n.group.Wait()
		return nil
	}
	now := n.clock()
	n.qps.all(func(q *Queue) { n.shut(now, q) })
	n.settleLate()
	n.qps.all(func(q *Queue) { q.Close() })
	err := n.conn.Close()
	close(n.quit)
	n.group.Wait()
	n.late.close()
	n.release(n.clock())
	return err
}

// shut flushes one queue pair.
func (n *NIC) shut(now mono.Time, q *Queue) {
	if q.State() == qp.Reset {
		return
	}
	if q.QP.Modify(now, &qp.Attr{State: qp.Err}, qp.MaskState) == nil {
		n.flush(now, q)
	}
}

// Pause waits a moment for late memory to finish. It reports false at once where time
// does not pass by itself: on a NIC that its owner steps.
func (n *NIC) Pause() bool {
	n.mu.Lock()
	started := n.started
	n.mu.Unlock()
	if started {
		time.Sleep(closeStep)
	}
	return started
}

// settleLate waits until no bytes are on their way, if somebody will tell.
func (n *NIC) settleLate() {
	for waited := time.Duration(0); n.late.inProgress() > 0 && waited < closeWait && n.Pause(); waited += closeStep {
	}
}

// release gives back what nobody uses any more.
func (n *NIC) release(now mono.Time) {
	for _, op := range n.late.take(nil) {
		q := op.q
		q.Lock()
		n.finish(now, op)
		q.Unlock()
	}
	n.svcMu.Lock()
	n.svc.free()
	n.svcMu.Unlock()
	for _, r := range n.rx {
		r.release()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}
