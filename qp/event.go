package qp

import (
	"fmt"
	"sync/atomic"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
)

// EventType is the kind of an asynchronous event, with the verbs number.
type EventType uint8

// The events.
const (
	// EventCQErr: a sink lost a completion; the queue pair is in error.
	EventCQErr EventType = 0
	// EventQPFatal: the queue pair went to the error state by itself, because of
	// what the peer asked for or because of local memory.
	EventQPFatal EventType = 1
	// EventCommEst: the first request arrived in RTR (§4.13).
	EventCommEst EventType = 4
	// EventSQDrained: the send queue of a queue pair in SQD is drained.
	EventSQDrained EventType = 5
	// EventDeviceFatal: the NIC can no longer receive, because its transport failed
	// for good. All its queue pairs are in error, their work requests completed
	// with cq.StatusFatal or flushed. Close the NIC and open another.
	EventDeviceFatal EventType = 8
	// EventSRQLimit: a shared receive queue fell below its limit.
	EventSRQLimit EventType = 15
	// EventLastWQE: a queue pair in the error state will take nothing more from
	// its shared receive queue (§3.17).
	EventLastWQE EventType = 16
)

// String returns the verbs name without its prefix, such as "COMM_EST".
func (t EventType) String() string {
	switch t {
	case EventCQErr:
		return "CQ_ERR"
	case EventQPFatal:
		return "QP_FATAL"
	case EventCommEst:
		return "COMM_EST"
	case EventSQDrained:
		return "SQ_DRAINED"
	case EventDeviceFatal:
		return "DEVICE_FATAL"
	case EventSRQLimit:
		return "SRQ_LIMIT_REACHED"
	case EventLastWQE:
		return "QP_LAST_WQE_REACHED"
	default:
		return fmt.Sprintf("event %d", uint8(t))
	}
}

// Event is something that happened outside any work request.
type Event struct {
	Type EventType
	QPN  roce.QPN // 0 for EventSRQLimit and EventDeviceFatal
	SRQ  *SRQ     // for EventSRQLimit
	// Cause says why, for EventQPFatal.
	Cause rc.Cause
	// Err is what the transport said, for EventDeviceFatal.
	Err error
}

// EventQueue holds events until somebody takes them. When it is full, new ones
// are dropped and counted. All methods may be called from any goroutine; a nil
// queue drops everything.
type EventQueue struct {
	ch      chan Event
	dropped atomic.Uint64
}

// NewEventQueue returns a queue for up to n events, at least 1.
func NewEventQueue(n int) *EventQueue { return &EventQueue{ch: make(chan Event, max(n, 1))} }

// C delivers the events.
func (e *EventQueue) C() <-chan Event { return e.ch }

// Dropped returns the number of events lost because nobody took them in time.
func (e *EventQueue) Dropped() uint64 {
	if e == nil {
		return 0
	}
	return e.dropped.Load()
}

// DeviceFatal tells of a NIC that has stopped receiving because of err.
func (e *EventQueue) DeviceFatal(err error) { e.put(Event{Type: EventDeviceFatal, Err: err}) }

// put never blocks: its callers hold a queue pair's lock.
func (e *EventQueue) put(ev Event) {
	if e == nil {
		return
	}
	select {
	case e.ch <- ev:
	default:
		e.dropped.Add(1)
	}
}
