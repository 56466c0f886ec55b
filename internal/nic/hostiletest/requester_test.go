package hostiletest

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// request is a posted work request and the packets it takes, numbered from 0 at
// the connection's first.
type request struct {
	qp.SendWR
	first, n uint64
	length   uint64
	local    *region // where data comes from or goes to; nil for inline
	off      uint64
}

func (r *request) end() uint64 { return r.first + r.n }

// answered reports whether only a response of its own completes the request.
func (r *request) answered() bool { return r.Op >= wr.OpRead }

const never = ^uint64(0)

// requester is the state of §3.1. una and sent are packet numbers; what is in
// flight is what the NIC was seen to send.
type requester struct {
	base            uint32 // PSN of packet 0
	una, sent, next uint64
	open            []request // oldest first
	depth           int
	rnrRetry        int
	rnrs            int    // left
	repairing       bool   // an implied NAK (§3.10)
	nakAt           uint64 // a sequence NAK was acted on, never if none
	waiting         bool   // after an RNR NAK
	again           uint64 // where the answer to a READ asked for again begins
	rewound         bool   // the next packet must be una
	quiet           bool   // SQD
}

func (s *requester) psn(n uint64) uint32 { return (s.base + uint32(n)) & mask24 }

// number is the packet number nearest to una.
func (s *requester) number(psn uint32) int64 {
	return int64(s.una) + int64(distance(psn, s.psn(s.una)))
}

// response is §3.9.
func (c *conn) response(p *packet) {
	s := &c.req
	if c.failed {
		c.want.inError++
		return
	}
	at := s.number(p.psn)
	if at < int64(s.una) || at >= int64(s.sent) {
		c.want.stale++
		return
	}
	code := synACK
	if p.layout.headers != "" {
		code = p.syndrome
	}
	positive := code>>5 == 0
	switch {
	case code>>5 == 2, code>>7 == 1, code > 0x64, !positive && p.op != opAck:
		return // reserved, or a NAK in something that cannot be one (§1.8, §3.11)
	case s.repairing && uint64(at) != s.una:
		c.want.stale++
		return
	}
	to := uint64(at)
	if p.op == opAck && positive {
		to++
	}
	progress := c.acknowledge(to)
	passed := s.una < to // an unanswered READ or atomic lies before it
	if p.op != opAck && !passed {
		if !c.answer(p) {
			return
		}
		progress = true
	}
	if progress {
		s.repairing, s.nakAt, s.waiting = false, never, false
		s.rnrs = s.rnrRetry
	}
	switch {
	case passed:
		c.impliedNAK()
	case code>>5 == 1:
		c.receiverNotReady()
	case code == nakSequence:
		c.sequenceNAK()
	case !positive:
		c.want.fatalReceived++
		c.fail(cq.StatusFlushed, map[byte]cq.Status{
			nakInvalid: cq.StatusRemoteInvalid, nakAccess: cq.StatusRemoteAccess,
			nakOperational: cq.StatusRemoteOperation, 0x64: cq.StatusRemoteInvalidRD,
		}[code])
	}
}

// acknowledge moves una to a packet number, up to a READ or atomic.
func (c *conn) acknowledge(to uint64) (progress bool) {
	s := &c.req
	for s.una < to && !s.open[0].answered() {
		progress = true
		if s.una = min(s.open[0].end(), to); s.una == s.open[0].end() {
			c.completeOldest()
		}
	}
	return progress
}

func (c *conn) completeOldest() {
	r := &c.req.open[0]
	if r.Flags&wr.Signaled != 0 {
		c.sent(cq.Completion{WRID: r.ID, Opcode: r.Op.Completion(), ByteLen: uint32(r.length)})
	}
	c.req.open = c.req.open[1:]
}

// answer takes a READ response or atomic result for packet una (§3.11).
func (c *conn) answer(p *packet) (ok bool) {
	s := &c.req
	r := &s.open[0]
	n := 1
	switch {
	case r.Op == wr.OpRead && p.op != opAtomicAck:
		return c.readData(r, p)
	case (r.Op == wr.OpCmpSwap || r.Op == wr.OpFetchAdd) && p.op == opAtomicAck:
		binary.NativeEndian.PutUint64(r.local.at(r.off, 8), p.original)
		c.touches(r.local.mem.late != nil)
	case r.Op == wr.OpAtomicWrite && p.op == opReadOnly && len(p.payload) == 0:
	default:
		c.fail(cq.StatusFlushed, cq.StatusBadResponse)
		return false
	}
	s.una += uint64(n)
	c.completeOldest()
	return true
}

func (c *conn) readData(r *request, p *packet) bool {
	s := &c.req
	i := s.una - r.first
	begins, mayBegin, ends := i == 0, i == 0 || s.una == s.again, i+1 == r.n
	legal := false
	switch p.op {
	case opReadFirst:
		legal = mayBegin && !ends
	case opReadMiddle:
		legal = !begins && !ends
	case opReadLast:
		legal = !begins && ends
	case opReadOnly:
		legal = mayBegin && ends
	}
	if !legal {
		c.fail(cq.StatusFlushed, cq.StatusBadResponse)
		return false
	}
	off := i * uint64(c.mtu)
	if want := min(r.length-off, uint64(c.mtu)); uint64(len(p.payload)) != want {
		c.fail(cq.StatusFlushed, cq.StatusLocalLength)
		return false
	}
	if len(p.payload) > 0 {
		copy(r.local.at(r.off+off, uint64(len(p.payload))), p.payload)
		c.touches(r.local.mem.late != nil)
	}
	if s.una++; s.una == r.end() {
		c.completeOldest()
	}
	return true
}

// impliedNAK is §3.10: once a gap. Neither it nor a sequence NAK costs a retry:
// both show that the peer is alive.
func (c *conn) impliedNAK() {
	s := &c.req
	if s.repairing || s.waiting {
		return
	}
	c.want.implied++
	s.repairing, s.rewound = true, true
}

// sequenceNAK is the first row of §3.15.
func (c *conn) sequenceNAK() {
	s := &c.req
	if s.waiting || s.nakAt == s.una {
		return
	}
	c.want.sequenceReceived++
	s.nakAt, s.rewound = s.una, true
}

// receiverNotReady is §3.14.
func (c *conn) receiverNotReady() {
	s := &c.req
	if s.waiting {
		return
	}
	c.want.rnrReceived++
	if s.rnrs == 0 {
		c.fail(cq.StatusFlushed, cq.StatusRNRRetryExceeded)
		return
	}
	if s.rnrRetry != 7 {
		s.rnrs--
	}
	s.waiting = true
}

// requestOf is the packet that a request sends as its number i (§3.3, §3.13).
func (c *conn) requestOf(r *request, i uint64) packet {
	first, last, mtu := i == 0, i+1 == r.n, uint64(c.mtu)
	pick := func(list ...byte) byte { // of first, middle, last, only
		switch {
		case first && last:
			return list[3]
		case first:
			return list[0]
		case last:
			return list[2]
		}
		return list[1]
	}
	p := packet{va: r.RemoteAddr, rkey: r.RKey, length: uint32(r.length), imm: r.Imm, inv: r.InvKey, swap: r.SwapAdd, compare: r.Compare}
	switch r.Op {
	case wr.OpSend:
		p.op = pick(opSendFirst, opSendMiddle, opSendLast, opSendOnly)
	case wr.OpSendImm:
		p.op = pick(opSendFirst, opSendMiddle, opSendLastImm, opSendOnlyImm)
	case wr.OpSendInv:
		p.op = pick(opSendFirst, opSendMiddle, opSendLastInv, opSendOnlyInv)
	case wr.OpWrite:
		p.op = pick(opWriteFirst, opWriteMiddle, opWriteLast, opWriteOnly)
	case wr.OpWriteImm:
		p.op = pick(opWriteFirst, opWriteMiddle, opWriteLastImm, opWriteOnlyImm)
	case wr.OpRead:
		p.op, p.va, p.length = opRead, r.RemoteAddr+i*mtu, uint32(r.length-min(i*mtu, r.length))
		return p
	case wr.OpCmpSwap:
		p.op = opCmpSwap
		return p
	case wr.OpFetchAdd:
		p.op = opFetchAdd
		return p
	default:
		p.op = opAtomicWrite
	}
	if r.local == nil {
		p.payload = r.Inline
	} else if n := min(mtu, r.length-i*mtu); n > 0 {
		p.payload = r.local.at(r.off+i*mtu, n)
	}
	return p
}

// observe checks a request packet that the NIC sent.
func (c *conn) observe(p *packet) {
	s, t := &c.req, c.w.t
	at := s.number(p.psn)
	if c.w.group && (at < int64(s.una) || c.failed) { // left before a later packet of the batch made it needless
		return
	}
	if c.w.lately && c.failed { // left before the late memory's answer, with which the connection fails
		return
	}
	n := uint64(at)
	switch {
	case at < int64(s.una) || n >= s.next:
		t.Fatalf("%v: sent packet %d of what was not posted or is answered: %d to %d are open", c, at, s.una, s.next)
	case s.waiting && !c.w.group:
		t.Fatalf("%v: sent before the RNR timer has ended (§3.14)", c)
	case c.state == qp.Err:
		t.Fatalf("%v: sent in the error state", c)
	case s.quiet && n >= s.sent:
		t.Fatalf("%v: a request was begun in SQD", c)
	case s.rewound && !c.w.group && n != s.una:
		t.Fatalf("%v: went back to packet %d, and %d is missing", c, n, s.una)
	}
	s.rewound = false
	for i := range s.open {
		r := &s.open[i]
		if n < r.first || n >= r.end() {
			continue
		}
		want := c.requestOf(r, n-r.first)
		l := layouts[want.op]
		require.Equal(t, want.op, p.op, "%s: opcode of packet %d of %v", c, n-r.first, r.Op)
		require.Equal(t, want.payload, orNil(p.payload), "%s: payload", c)
		require.True(t, p.rightLength(c.mtu) && p.pkey == 0xFFFF, "%s: %v", c, p)
		if l.headers != "" {
			got := packet{op: p.op, va: p.va, rkey: p.rkey, length: p.length, imm: p.imm, inv: p.inv, swap: p.swap, compare: p.compare}
			require.Equal(t, only(want, l.headers), got, "%s: headers", c)
		}
		end := n + 1
		if r.Op == wr.OpRead {
			end = r.end()
			if n > r.first {
				s.again = n
			}
		}
		s.sent = max(s.sent, end)
		return
	}
	t.Fatalf("%v: no request has packet %d", c, n)
}

// only keeps the fields that a set of headers carries.
func only(p packet, headers string) packet {
	q := packet{op: p.op}
	for _, h := range headers {
		switch h {
		case 'R':
			q.va, q.rkey, q.length = p.va, p.rkey, p.length
		case 'T':
			q.va, q.rkey, q.swap, q.compare = p.va, p.rkey, p.swap, p.compare
		case 'I':
			q.imm = p.imm
		case 'V':
			q.inv = p.inv
		}
	}
	return q
}

func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
