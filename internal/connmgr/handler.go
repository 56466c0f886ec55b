package connmgr

import "github.com/gohixl/hixl/roce/cm"

// Handler takes the events of a listener, a connection or a question. It is never
// called by two goroutines at a time, nor with a lock of this package but the run
// lock held, so it may give commands. It must not block.
type Handler interface {
	// Event is one event; of one connection they come in the order of package cm.
	Event(e *cm.Event)
	// Closed says that the manager has closed, and why: with its NIC, which is
	// nic.ErrClosed, or because the NIC's transport has failed, a
	// *nic.DeviceError. No event follows.
	Closed(why error)
}
