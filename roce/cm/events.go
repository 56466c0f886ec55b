package cm

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/roce"
)

// EventKind says what an [Event] is.
type EventKind uint8

// The events of connections. One connection's come in this order: ConnectRequest
// and Established, or ConnectResponse, as far as it gets; at most one of Rejected,
// Unreachable, Disconnected; exactly one TimewaitExit, after which the id means
// nothing. [Agent.Destroy] and [Agent.Reject] leave only the last to come.
const (
	// EventConnectRequest: a REQ has come for a service that is listened on.
	// Answer with Prepare and Accept, or Reject. Request and Private count.
	EventConnectRequest EventKind = iota + 1
	// EventConnectResponse: our REQ was accepted. Connect the queue pair with
	// QP, then Confirm or Reject. Private counts.
	EventConnectResponse
	// EventEstablished: a passive connection is established, by RTU or by its
	// first packet. Private is nil in the second case.
	EventEstablished
	// EventRejected: the connection will not be made. Reason, Info and Private
	// count; Local says that the agent refused what the peer sent, or that the
	// peer has a newer connection on the same queue pair ([ReasonStale]).
	EventRejected
	// EventUnreachable: the peer has not answered, or does not wait for our
	// answer any more.
	EventUnreachable
	// EventDisconnected: move the queue pair to the error state. Local says that
	// this side began; Reason is not 0 if it was no orderly end: the peer's REJ,
	// [ReasonTimeout] if it did not answer our DREQ, [ReasonStale] if it has a
	// newer connection on the same queue pair. Private counts.
	EventDisconnected
	// EventTimewaitExit: the last event of a connection. QPN, if not 0, may be
	// used again.
	EventTimewaitExit

	// EventSIDRRequest: a SIDR_REQ has come. Answer with AnswerSIDR. Request and
	// Private count.
	EventSIDRRequest
	// EventSIDRReply: the answer to Resolve; the id means nothing any more.
	// Status, and if it is [SIDROK] QPN and QKey, count; Info and Private too.
	// Without an answer, Unreachable comes instead.
	EventSIDRReply
)

var eventNames = [...]string{
	"", "CONNECT_REQUEST", "CONNECT_RESPONSE", "ESTABLISHED", "REJECTED", "UNREACHABLE",
	"DISCONNECTED", "TIMEWAIT_EXIT", "SIDR_REQUEST", "SIDR_REPLY",
}

// String returns librdmacm's name of the event, where it has one.
func (k EventKind) String() string {
	if k == 0 || int(k) >= len(eventNames) {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return eventNames[k]
}

// Event says what happened to a connection or SIDR exchange. Which fields count
// depends on Kind; Kind, ID and Peer always do. Slices belong to whoever takes it.
type Event struct {
	Kind EventKind
	ID   CommID
	Peer netip.Addr
	// QPN is our own queue pair's number; the peer's in EventSIDRReply.
	QPN     roce.QPN
	Request Request
	QP      QPParams
	// Local, Reason and Info say how a connection ended.
	Local  bool
	Reason Reason
	Info   []byte
	// Status and QKey are the answer to Resolve.
	Status SIDRStatus
	QKey   uint32
	// Private is the peer's private data, of the message's full size, padded
	// with zeros: applications bring their own length (§5.5).
	Private []byte
}

// Err returns nil for an event that ends nothing and for an answer that is
// [SIDROK], otherwise an *[EndError].
func (e *Event) Err() error {
	switch e.Kind {
	case EventRejected, EventUnreachable, EventDisconnected:
		return &EndError{*e}
	case EventSIDRReply:
		if e.Status != SIDROK {
			return &EndError{*e}
		}
	default:
	}
	return nil
}

// Send is a MAD to put into a GSI packet: UD SEND_ONLY from queue pair 1 to queue
// pair 1 with Q_Key 0x80010000 (§5.2).
type Send struct {
	To netip.Addr
	// FlowLabel is the connection's, which hardware derives the UDP source port
	// from (C9); rdma_rxe uses one fixed port instead, and either is right.
	FlowLabel    uint32
	TrafficClass uint8
	// Ends, if not 0, is our queue pair whose end the message tells: it is to be
	// sent when no byte of the peer is on its way into memory through it any more,
	// since the peer relies on that (§5.13).
	Ends roce.QPN
	MAD  [MADLen]byte
}
