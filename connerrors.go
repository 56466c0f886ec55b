package hixl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gohixl/hixl/roce/cm"
)

// Errors of connections to test for with errors.Is, beside net.ErrClosed and those
// of contexts.
var (
	// ErrRejected: the other end said no. The error is a *[RejectedError].
	ErrRejected = cm.ErrRejected
	// ErrUnreachable: the other end does not answer.
	ErrUnreachable = cm.ErrUnreachable
	// ErrDisconnected: the connection has ended. The error is a
	// *[DisconnectedError].
	ErrDisconnected = cm.ErrDisconnected
	// ErrListening: somebody listens on the port already.
	ErrListening = cm.ErrListening
)

// RejectReason says why a connection was refused, with the number on the wire.
type RejectReason = cm.Reason

// Reasons that applications meet.
const (
	RejectNoResources = cm.ReasonNoResources // its backlog or its tables are full
	RejectNoListener  = cm.ReasonServiceID   // nobody listens on the port
	RejectStale       = cm.ReasonStale       // it takes the request for an old connection's
	RejectMTU         = cm.ReasonMTU         // the path MTU asked for is too large
	RejectConsumer    = cm.ReasonConsumer    // its application said no, with private data
)

// ConnError says what failed, with which address. It unwraps to the reason: a
// *[RejectedError], [ErrUnreachable], the context's error, net.ErrClosed, a
// *net.DNSError, or what a wrong argument gives.
type ConnError struct {
	Op   string // "dial", "listen", "accept", "resolve", "disconnect"
	Addr string // the other end's, or of a listener its own
	Err  error
}

func (e *ConnError) Error() string {
	return fmt.Sprintf("hixl: %s %s: %v%s", e.Op, e.Addr, e.Err, e.advice())
}

// Unwrap returns the reason.
func (e *ConnError) Unwrap() error { return e.Err }

// Timeout reports whether nobody answered in time.
func (e *ConnError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.Err, ErrUnreachable) || errors.As(e.Err, &t) && t.Timeout()
}

func (e *ConnError) advice() string {
	if (e.Op == "dial" || e.Op == "resolve") && e.Timeout() {
		return "; is an RDMA NIC (hixl, rdma_rxe or hardware) up at that address, and does UDP port 4791 pass both ways?"
	}
	return ""
}

// DisconnectedError says how a connection ended. It unwraps to [ErrDisconnected],
// and to Cause when the queue pair broke.
type DisconnectedError struct {
	Peer netip.AddrPort
	// Local says that this side ended it.
	Local bool
	// Reason is 0 after an orderly end.
	Reason RejectReason
	// Cause is why the queue pair failed, if that ended the connection. Where a
	// device's memory failed it unwraps to the device's error as well.
	Cause error
	// PrivateData is what the peer's application said, padded with zeros.
	PrivateData []byte
}

func (e *DisconnectedError) Error() string {
	who := "by the peer"
	if e.Local {
		who = "by this side"
	}
	s := fmt.Sprintf("hixl: connection to %v was ended %s", e.Peer, who)
	if e.Reason != 0 {
		s += ": " + e.Reason.String()
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns [ErrDisconnected] and the cause.
func (e *DisconnectedError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrDisconnected}
	}
	return []error{ErrDisconnected, e.Cause}
}

// errNICClosed is what is told of everything that the NIC's end has ended.
var errNICClosed = fmt.Errorf("%w: %w", ErrClosed, net.ErrClosed)

// closedOr adds net.ErrClosed to the NIC's own error, so that the habits of
// package net work.
func closedOr(err error) error {
	if errors.Is(err, ErrClosed) {
		return errNICClosed
	}
	return err
}
