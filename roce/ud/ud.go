package ud

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Numbers of the datagram service.
const (
	// GSIQKey is the Q_Key of every packet to and from QP1 (§5.2).
	GSIQKey = 0x80010000
	// CMQKey is the Q_Key that the RDMA CM gives to its datagram queue pairs
	// (§5.1).
	CMQKey = 0x01234567
	// privilegedQKey marks Q_Keys that a work request cannot choose (§5.1).
	privilegedQKey = 1 << 31
	// MaxPending bounds the datagrams whose bytes are not in memory yet.
	MaxPending = 4096
)

// Config describes a datagram queue pair. It is read by [New] and not kept.
type Config struct {
	LocalQPN roce.QPN
	// QKey is what a datagram must carry to be received.
	QKey uint32
	// MTU is the largest payload in bytes, that of the port (§5.1).
	MTU int
	// PKey goes into every packet; 0 means 0xFFFF.
	PKey uint16
	// Receives gives the receive work requests, each of at most MaxRecvSGE spans.
	Receives   wr.ReceiveSource
	MaxRecvSGE int
	// SendQueue and MaxSendSGE size the rings of the sender.
	SendQueue, MaxSendSGE int
}

// Stats counts what a queue pair has seen.
type Stats struct {
	Requests, Received uint64
	// BadQKey, NoReceive, TooLong and Busy are datagrams dropped: their Q_Key
	// was wrong, no receive was posted, the receive was too short (it stays
	// posted), or too many were on their way into memory.
	BadQKey, NoReceive, TooLong, Busy uint64
	// DroppedInError and DroppedOpcode are packets ignored.
	DroppedInError, DroppedOpcode uint64
}

// UD is a datagram queue pair; see [New]. It is not safe for concurrent use.
type UD struct {
	lqpn  roce.QPN
	qkey  uint32
	pkey  uint16
	mtu   uint64
	stats Stats

	send sender
	recv receiver

	status  cq.Status
	pending []cq.Completion
}

// New returns a queue pair that receives at once and sends after
// [UD.StartSend].
func New(cfg Config) *UD {
	u := &UD{lqpn: cfg.LocalQPN, qkey: cfg.QKey, pkey: cfg.PKey, mtu: uint64(cfg.MTU)}
	if u.pkey == 0 {
		u.pkey = 0xFFFF
	}
	u.send.Init(cfg.SendQueue, max(cfg.MaxSendSGE, 1))
	u.recv.receives = cfg.Receives
	u.recv.recv.Spans = make([]mr.Span, 0, max(cfg.MaxRecvSGE, 1))
	return u
}

// StartSend lets the queue pair send (RTR→RTS), from the PSN given.
func (u *UD) StartSend(first roce.PSN) { u.send.next, u.send.started = wr.Sequence(first), true }

// SetQKey changes the Q_Key.
func (u *UD) SetQKey(k uint32) { u.qkey = k }

// Completions returns what has finished since the last [UD.ClearCompletions].
func (u *UD) Completions() []cq.Completion { return u.pending }

// ClearCompletions forgets the completions that were taken.
func (u *UD) ClearCompletions() { u.pending = u.pending[:0] }

// Fail moves the queue pair to the error state: what is outstanding completes
// flushed, but the oldest request with status, if that says what failed.
func (u *UD) Fail(status cq.Status) {
	u.send.Blame(status)
	u.fail(status)
}

// fail does so for what no request is to blame for.
func (u *UD) fail(status cq.Status) {
	if u.Failed() {
		return
	}
	u.send.Fail()
	u.status = status
	u.recv.settle(u)
	u.retire()
}

// Failed reports whether the queue pair is in the error state, Status why.
func (u *UD) Failed() bool { return u.send.Failed() }

// Status is the status that led to the error state.
func (u *UD) Status() cq.Status { return u.status }

// Idle reports whether nothing is in progress.
func (u *UD) Idle() bool { return u.send.Len() == 0 && u.recv.outstanding == 0 }

// Outstanding returns the number of requests that have not completed.
func (u *UD) Outstanding() int { return u.send.Len() }

// Quiesce stops (or resumes) starting work requests (SQD).
func (u *UD) Quiesce(on bool) { u.send.quiesced = on }

// Quiet reports whether no payload is being read.
func (u *UD) Quiet() bool { return u.send.AllRead() }

// Stats returns the counters.
func (u *UD) Stats() Stats { return u.stats }

func (u *UD) complete(c *cq.Completion) {
	c.QPN = u.lqpn
	u.pending = append(u.pending, *c)
}
