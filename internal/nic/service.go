package nic

import "github.com/gohixl/hixl/internal/mono"

// Service is a protocol of its own that lives on the NIC's clock and service
// goroutine, such as connection management on QP1.
type Service interface {
	// Run does what there is to do at now and reports whether there was
	// anything. It is called after [NIC.Wake], when Deadline has passed and when
	// the transport has failed ([NIC.Err]), by one goroutine at a time that holds
	// no lock; it must not block.
	Run(now mono.Time) (worked bool)
	// Deadline returns when Run wants to be called without Wake; 0 is never.
	Deadline() mono.Time
}

// attachment holds a Service, which atomics cannot.
type attachment struct{ Service }

// Attach gives the NIC its one service.
func (n *NIC) Attach(s Service) {
	n.attached.Store(&attachment{s})
	n.Wake()
}

// Wake has the service run soon: on the service goroutine, or in the next Poll of
// a stepped NIC. It never blocks and may be called with any lock held.
func (n *NIC) Wake() {
	n.woken.Store(true)
	n.kick()
}

// Now is the NIC's time.
func (n *NIC) Now() mono.Time { return n.clock() }

// attend runs the service if there is a reason to.
func (n *NIC) attend(now mono.Time) bool {
	a := n.attached.Load()
	woken := n.woken.Swap(false)
	if a == nil {
		return false
	}
	if !woken {
		if at := a.Deadline(); at.IsZero() || now.Before(at) {
			return false
		}
	}
	return a.Run(now)
}
