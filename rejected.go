package hixl

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/roce/cm"
)

// RejectedError is a connection or question that the other end refused. It
// unwraps to [ErrRejected].
type RejectedError struct {
	Peer   netip.AddrPort
	Reason RejectReason
	// Local says that this side's connection manager found the answer unusable.
	Local bool
	// Info is what some reasons add, such as an acceptable MTU.
	Info []byte
	// PrivateData is what the other application said, with [RejectConsumer], of
	// full size and padded with zeros.
	PrivateData []byte
}

func (e *RejectedError) Error() string {
	who := "rejected"
	if e.Local {
		who = "given up by this side"
	}
	s := fmt.Sprintf("%s: %v", who, e.Reason)
	if a := rejectAdvice[e.Reason]; a != "" {
		s += ": " + a
	}
	return s
}

// Unwrap returns [ErrRejected].
func (e *RejectedError) Unwrap() error { return ErrRejected }

// rejectAdvice says what to do about a reason.
var rejectAdvice = map[RejectReason]string{
	cm.ReasonNoQP:               "it has no queue pair left: close connections there or raise its limit",
	cm.ReasonNoResources:        "its backlog is full or its application too slow to accept: try again later",
	cm.ReasonTimeout:            "it did not get our answer in time: try again",
	cm.ReasonUnsupported:        "it does not understand the request",
	cm.ReasonServiceID:          "start the server, or check the port and the port space (connections and datagrams have their own)",
	cm.ReasonTransport:          "it wants another service: RC against UC",
	cm.ReasonStale:              "it takes the request for one of an old connection: dial again with a new queue pair",
	cm.ReasonGID:                "it knows the addresses otherwise: address translation (NAT) on the way, or a dial to one of its other addresses",
	cm.ReasonMTU:                "lower ConnectOptions.MTU",
	cm.ReasonResponderResources: "lower MaxReads",
	cm.ReasonConsumer:           "its application said no, perhaps with private data",
	cm.ReasonRNRRetry:           "choose another RNRRetries",
}

// DeclinedError is a question for a datagram queue pair that was answered with no.
// It unwraps to [ErrRejected].
type DeclinedError struct {
	Peer netip.AddrPort
	// Status says why, with the number on the wire.
	Status cm.SIDRStatus
	// PrivateData is what the other application said, padded with zeros.
	PrivateData []byte
}

func (e *DeclinedError) Error() string {
	s := fmt.Sprintf("declined: %v (%d)", e.Status, uint8(e.Status))
	if e.Status == cm.SIDRUnsupported {
		s += ": start the server, or check the port and the port space (connections and datagrams have their own)"
	}
	return s
}

// Unwrap returns [ErrRejected].
func (e *DeclinedError) Unwrap() error { return ErrRejected }
