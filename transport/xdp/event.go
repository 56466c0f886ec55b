package xdp

import "fmt"

// EventKind is what happened to a link.
type EventKind uint8

// What can happen.
const (
	// LinkDown: packets are lost until LinkUp.
	LinkDown EventKind = iota
	LinkUp
	// AddressLost: the address was taken from the link; nothing is sent until
	// AddressBack.
	AddressLost
	AddressBack
	// MTUChanged: Event.MTU is the new one. Packets that do not fit are refused
	// with a *transport.MTUError.
	MTUChanged
	// MACChanged: frames leave with the new hardware address.
	MACChanged
	// LinkGone: the link was removed, and the Conn has failed for good.
	LinkGone
)

var eventNames = [...]string{
	LinkDown: "link down", LinkUp: "link up", AddressLost: "address lost", AddressBack: "address back",
	MTUChanged: "MTU changed", MACChanged: "hardware address changed", LinkGone: "link gone",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// Event is a change on the link of a Conn.
type Event struct {
	Kind      EventKind
	Interface string
	MTU       int // of the link, in bytes
}

func (e Event) String() string { return fmt.Sprintf("%s: %v, MTU %d", e.Interface, e.Kind, e.MTU) }
