package uc

import (
	"net/netip"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// MaxPending bounds the packets of one peer whose bytes have been accepted but
// are not in their region yet.
const MaxPending = 4096

// Config describes a connection. It is read by [New] and not kept.
type Config struct {
	// LocalQPN and RemoteQPN name the two ends. Peer appears in completions.
	LocalQPN, RemoteQPN roce.QPN
	Peer                netip.Addr
	// PD resolves the remote keys that WRITEs name.
	PD *mr.PD
	// MTU is the path MTU in payload bytes: 256, 512, 1024, 2048 or 4096.
	MTU int
	// PKey goes into every packet; 0 means 0xFFFF.
	PKey uint16
	// ExpectPSN is the PSN expected first, Access what the peer may do.
	ExpectPSN roce.PSN
	Access    mr.Access
	// Receives gives the receive work requests, each of at most MaxRecvSGE spans.
	Receives   wr.ReceiveSource
	MaxRecvSGE int
	// SendQueue and MaxSendSGE size the rings of the sender.
	SendQueue, MaxSendSGE int
}

// Stats counts what a connection has seen.
type Stats struct {
	// Requests are packets sent.
	Requests uint64
	// LostMessages are messages given up because a packet was missing or no
	// receive was posted, Refused those whose key, range, length or right was
	// wrong, DroppedPackets the packets dropped with them.
	LostMessages, Refused, DroppedPackets uint64
	// DroppedInError and DroppedOpcode are packets ignored.
	DroppedInError, DroppedOpcode uint64
}

// UC is one unreliable connection; see [New]. It is not safe for concurrent use.
type UC struct {
	lqpn, rqpn roce.QPN
	peer       netip.Addr
	pkey       uint16
	mtu        uint64
	stats      Stats

	send sender
	recv receiver

	status  cq.Status
	pending []cq.Completion
}

// New returns a connection that receives at once and sends after
// [UC.StartSend].
func New(cfg Config) *UC {
	u := &UC{lqpn: cfg.LocalQPN, rqpn: cfg.RemoteQPN, peer: cfg.Peer, pkey: cfg.PKey, mtu: uint64(cfg.MTU)}
	if u.pkey == 0 {
		u.pkey = 0xFFFF
	}
	u.send.Init(cfg.SendQueue, max(cfg.MaxSendSGE, 1))
	u.recv.init(u, &cfg)
	return u
}

// StartSend lets the connection send (RTR→RTS), from the PSN given.
func (u *UC) StartSend(first roce.PSN) {
	u.send.next, u.send.started = wr.Sequence(first), true
}

// Accept takes a packet from the peer whose ICRC and address were right and
// returns what is to be done with memory for it.
func (u *UC) Accept(p *roce.Packet) wr.Work {
	switch {
	case u.Failed():
		u.stats.DroppedInError++
	case p.Opcode.Transport() != roce.UC || wr.TraitsOf(p.Opcode) == 0:
		u.stats.DroppedOpcode++
	default:
		return u.recv.packet(p)
	}
	return wr.Work{}
}

// Commit reports that the placement with this token has ended.
func (u *UC) Commit(token uint64, o wr.Outcome) { u.recv.committed(token, o) }

// Fetched reports that a packet's payload has been read, or could not be: that
// fails its request. It must follow every packet that has a token.
func (u *UC) Fetched(token uint64, o wr.Outcome) {
	if s := u.send.Fetched(token, o); s != cq.StatusSuccess {
		u.fail(s)
	}
	u.retire()
}

// Completions returns what has finished since the last [UC.ClearCompletions].
func (u *UC) Completions() []cq.Completion { return u.pending }

// ClearCompletions forgets the completions that were taken.
func (u *UC) ClearCompletions() { u.pending = u.pending[:0] }

// Fail moves the connection to the error state: what is outstanding completes
// flushed, but the oldest request with status, if that says what failed.
func (u *UC) Fail(status cq.Status) {
	u.send.Blame(status)
	u.fail(status)
}

// fail does so for what no request is to blame for.
func (u *UC) fail(status cq.Status) {
	if u.Failed() {
		return
	}
	u.send.Fail()
	u.status = status
	u.recv.settle()
	u.retire()
}

// Failed reports whether the connection is in the error state, Status why.
func (u *UC) Failed() bool { return u.send.Failed() }

// Status is the status that led to the error state.
func (u *UC) Status() cq.Status { return u.status }

// Idle reports whether nothing is in progress.
func (u *UC) Idle() bool { return u.send.Len() == 0 && u.recv.outstanding == 0 }

// Outstanding returns the number of requests that have not completed.
func (u *UC) Outstanding() int { return u.send.Len() }

// Quiesce stops (or resumes) starting work requests (SQD).
func (u *UC) Quiesce(on bool) { u.send.quiesced = on }

// Quiet reports whether no message is half sent.
func (u *UC) Quiet() bool { return u.send.packet == 0 && u.send.AllRead() }

// SetAccess changes what the peer may do.
func (u *UC) SetAccess(a mr.Access) { u.recv.access = a }

// Stats returns the counters.
func (u *UC) Stats() Stats { return u.stats }

// complete gives a completion with the connection's names filled in.
func (u *UC) complete(c *cq.Completion) {
	c.QPN, c.SrcQP, c.Peer = u.lqpn, u.rqpn, u.peer
	u.pending = append(u.pending, *c)
}
