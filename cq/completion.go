package cq

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gohixl/hixl/roce"
)

// Completion tells what became of one work request. It is a value; a Sink copies
// it. With a Status other than success only WRID, Status, Opcode, QPN and what
// describes the failure (Peer, Syndrome, RemoteAddr, RKey) are valid.
type Completion struct {
	WRID   uint64 // the work request's own number, as posted
	Status Status
	Opcode Opcode
	Flags  Flags
	// Syndrome is what the peer's NAK said, for a status that stems from one.
	Syndrome roce.Syndrome
	QPN      roce.QPN // local queue pair
	SrcQP    roce.QPN // sender's queue pair, receives only
	// ByteLen is the bytes received (UD: plus 40), or read, or sent. Of a send on a
	// reliable connection that failed it is the bytes known to have arrived.
	ByteLen    uint32
	Imm        uint32     // with WithImm; wire bytes ca fe 00 01 are 0xcafe0001
	InvKey     uint32     // with WithInv
	RKey       uint32     // of the request
	RemoteAddr uint64     // of the request, in the peer's region
	Peer       netip.Addr // zero when not known
}

// Err is nil for success, else a *StatusError.
func (c *Completion) Err() error {
	if c.Status == StatusSuccess {
		return nil
	}
	return &StatusError{Completion: *c}
}

// Sink takes completions: a Queue, or another front end's ring.
type Sink interface {
	// Complete records a copy of c. It must not block and must not call into
	// the queue pair: its caller holds that one's lock. False means that the
	// completion was lost, for want of room or because the sink is closed; the
	// queue pair then enters the error state.
	Complete(c *Completion) bool
}

// StatusError is a failed completion as an error. It unwraps to the sentinel of
// its status.
type StatusError struct{ Completion Completion }

// Error names the operation, the peer, the queue pair and the remote place where
// they apply, the status with its verbs number, and what to do.
func (e *StatusError) Error() string {
	c := &e.Completion
	var b strings.Builder
	fmt.Fprintf(&b, "hixl: %v", c.Opcode)
	if c.Peer.IsValid() {
		from := "to"
		if c.Opcode.IsRecv() {
			from = "from"
		}
		fmt.Fprintf(&b, " %s %v", from, c.Peer)
	}
	fmt.Fprintf(&b, " on qp %#06x", uint32(c.QPN))
	if c.Opcode.hasRemoteAddress() {
		fmt.Fprintf(&b, ", remote addr %#x rkey %#08x", c.RemoteAddr, c.RKey)
	}
	fmt.Fprintf(&b, ": %v (%d)", c.Status, uint8(c.Status))
	if c.Syndrome != 0 && c.Syndrome.Kind() != roce.AckACK {
		fmt.Fprintf(&b, ", the peer said %v", c.Syndrome)
	}
	if a := c.Status.Advice(); a != "" {
		b.WriteString(": " + a)
	}
	return b.String()
}

// Unwrap returns the status's sentinel.
func (e *StatusError) Unwrap() error { return e.Completion.Status.Sentinel() }
