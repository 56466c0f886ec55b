package hostiletest

import (
	"fmt"
	"math/rand/v2"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// conn is a queue pair of the NIC under test, whose peer is the test itself, and
// the model of both its halves.
type conn struct {
	w       *world
	q       *nic.Queue
	qpn     uint32
	peerQPN uint32
	peer    int // index of its host
	pd      int
	mtu     int
	state   qp.State
	access  mr.Access
	failed  bool // in this batch or before
	mute    bool // in this batch, by a response: it says nothing any more
	resp    responder
	req     requester
	queue   *receives
	shared  bool
	cnpNext mono.Time

	sends, recvs         sink
	wantSends, wantRecvs []cq.Completion
	want                 counts
	replies, got         []reply
	events               []qp.EventType
	past                 []draft // requests that were executed, newest last, for duplicates
	spent                int     // packets since it failed
}

func (c *conn) String() string {
	return fmt.Sprintf("qp %#x (%v, MTU %d)", c.qpn, c.state, c.mtu)
}

// sink collects completions.
type sink struct{ got []cq.Completion }

func (s *sink) Complete(c *cq.Completion) bool {
	s.got = append(s.got, *c)
	return true
}

// counts are the counters that the model keeps; the names are rc.Stats's.
type counts struct {
	duplicates, outOfSequence, stale, inError    uint64
	fatalSent, readsReplayed, atomicsReplayed    uint64
	sequenceReceived, rnrReceived, fatalReceived uint64
	implied, cnpReceived                         uint64
	cnpSent, sequenceSent, rnrSent               uint64 // as the peer saw them
	acknowledged                                 uint64
}

// reply is a response as the peer sees it.
type reply struct {
	op       byte
	psn, msn uint32
	syndrome byte
	original uint64
	payload  []byte
	again    bool // to a duplicate: several may be answered at once
}

func (r reply) String() string {
	return fmt.Sprintf("%v psn %#x msn %#x syndrome %#x original %#x, %d bytes", roce.Opcode(r.op), r.psn, r.msn, r.syndrome, r.original, len(r.payload))
}

func (c *conn) reply(r reply) {
	if r.op == opReadMiddle {
		r.syndrome, r.msn = 0, 0 // it has no AETH
	}
	c.replies = append(c.replies, r)
}

func (c *conn) event(e qp.EventType) { c.events = append(c.events, e) }

// touches notes that late memory is part of what the batch does.
func (c *conn) touches(late bool) { c.w.lately = c.w.lately || late }

func (c *conn) sent(wc cq.Completion)     { c.wantSends = append(c.wantSends, wc) }
func (c *conn) received(wc cq.Completion) { c.wantRecvs = append(c.wantRecvs, wc) }

// fail enters the error state (§3.17): held is the status of the receive in
// progress, oldest that of the oldest request.
func (c *conn) fail(held, oldest cq.Status) {
	c.failed = true
	c.resp.in = kind{}
	if r := c.resp.recv; r != nil {
		c.received(cq.Completion{WRID: r.id, Status: held})
		c.resp.recv = nil
	}
	for i := range c.req.open {
		c.sent(cq.Completion{WRID: c.req.open[i].ID, Status: oldest})
		oldest = cq.StatusFlushed
	}
	c.req.open, c.req.rewound = nil, false
	if c.shared {
		c.event(qp.EventLastWQE)
		return
	}
	for r := c.queue.take(); r != nil; r = c.queue.take() {
		c.received(cq.Completion{WRID: r.id, Status: cq.StatusFlushed})
	}
}

// size is mostly small and often at an edge of the MTU.
func (w *world) size(mtu int) int {
	switch w.rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return mtu
	case 2:
		return 2*mtu + w.rng.IntN(mtu)
	case 3:
		return mtu + 1 + w.rng.IntN(mtu)
	case 4:
		return 1 + w.rng.IntN(mtu)
	}
	return 1 + w.rng.IntN(16)
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }
