package hostiletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/qp"
)

// compare holds the NIC against the model after a batch.
func (w *world) compare() {
	w.t.Helper()
	var faults []string
	note := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, c := range w.conns {
		c.compare(note)
	}
	w.compareEvents(note)
	if w.lately || w.steps%64 == 0 {
		if !w.late.right() {
			note("late memory differs")
		}
	}
	w.mop()
	if !w.host.right() {
		note("memory differs: %s", difference(w.host.want, w.host.host.Bytes()))
	}
	s := w.nic.Stats()
	inError := w.pastInError + s.RC.DroppedInError
	state := s.Drops[nic.DropState] + inError // either, by whether the error was known before the batch
	wantState := w.dropped[nic.DropState] + w.pastWantInError
	for _, c := range w.conns {
		wantState += c.want.inError
	}
	if state != wantState {
		note("drops for the state: %d, want %d", state, wantState)
	}
	s.Drops[nic.DropState] = w.dropped[nic.DropState]
	if n := s.Drops[nic.DropLength] - w.dropped[nic.DropLength]; n <= w.either {
		s.Drops[nic.DropLength], s.Drops[nic.DropVersion] = w.dropped[nic.DropLength], s.Drops[nic.DropVersion]+n-w.either
	}
	if s.Drops != w.dropped {
		note("drops: %v, want %v", s.Drops, w.dropped)
	}
	if len(faults) > 0 {
		w.t.Fatalf("step %d: %s\nlast packets:\n%s", w.steps, strings.Join(faults, "\n"), strings.Join(w.diary, "\n"))
	}
}

func difference(want, have []byte) string {
	for i := range want {
		if want[i] != have[i] {
			n := i
			for n < len(want) && want[n] != have[n] {
				n++
			}
			return fmt.Sprintf("first at %d: %x, want %x", i, have[i:min(n, i+16)], want[i:min(n, i+16)])
		}
	}
	return "nowhere"
}

func (w *world) compareEvents(note func(string, ...any)) {
	for {
		select {
		case e := <-w.nic.Events():
			c := w.byQPN[uint32(e.QPN)]
			if c == nil {
				if c = w.liveConn(uint32(e.QPN)); c == nil || e.Type != qp.EventCommEst {
					note("event %v of qp %#x", e.Type, e.QPN)
				}
				continue
			}
			i := slices.Index(c.events, e.Type)
			if i < 0 {
				note("%v: event %v", c, e.Type)
				continue
			}
			c.events = slices.Delete(c.events, i, i+1)
		default:
			for _, c := range w.conns {
				if len(c.events) > 0 {
					note("%v: events missing: %v", c, c.events)
				}
			}
			return
		}
	}
}

func (c *conn) compare(note func(string, ...any)) {
	if len(c.replies)+len(c.got) > 0 || c.resp.owed {
		c.compareReplies(note)
	}
	c.compareCompletions("send", &c.sends, &c.wantSends, note)
	c.compareCompletions("receive", &c.recvs, &c.wantRecvs, note)
	if c.failed && c.state != qp.Err {
		c.state = qp.Err
	}
	if have := c.q.State(); have != c.state {
		note("%v: is in %v", c, have)
	}
	if sends, _ := c.q.Outstanding(); sends != len(c.req.open) {
		note("%v: %d requests open, want %d", c, sends, len(c.req.open))
	}
	if c.req.rewound && !c.w.group {
		note("%v: did not send again from packet %d", c, c.req.una)
	}
	c.req.rewound = false
	c.compareCounts(note)
	c.resp.newBatch()
	c.replies, c.got, c.mute = c.replies[:0], c.got[:0], false
}

func (c *conn) compareCounts(note func(string, ...any)) {
	s, k := c.q.Stats(), &c.want
	if c.w.group { // a batch may answer several duplicates at once
		if s.ReadsReplayed <= k.readsReplayed && s.AtomicsReplayed <= k.atomicsReplayed {
			k.readsReplayed, k.atomicsReplayed = s.ReadsReplayed, s.AtomicsReplayed
		}
	}
	if now := s.Acknowledged; c.failed && k.acknowledged <= now && now <= c.req.una {
		k.acknowledged = now // what the answer at fault acknowledged beside is of no interest
	} else {
		k.acknowledged = c.req.una
	}
	have := counts{
		duplicates: s.Duplicates, outOfSequence: s.OutOfSequence, stale: s.StaleResponses, fatalSent: s.FatalNAKsSent,
		readsReplayed: s.ReadsReplayed, atomicsReplayed: s.AtomicsReplayed, sequenceReceived: s.SeqNAKsReceived,
		rnrReceived: s.RNRsReceived, fatalReceived: s.FatalNAKsReceived, implied: s.ImpliedNAKs,
		cnpReceived: s.CNPsReceived, cnpSent: s.CNPsSent, sequenceSent: s.SeqNAKsSent, rnrSent: s.RNRsSent,
		inError: k.inError, acknowledged: s.Acknowledged,
	}
	if have != *k {
		note("%v: counters %+v, want %+v", c, have, *k)
	}
}

// compareCompletions: everything of a success, number and status of an error.
func (c *conn) compareCompletions(what string, s *sink, want *[]cq.Completion, note func(string, ...any)) {
	defer func() { s.got, *want = s.got[:0], (*want)[:0] }()
	for i := range s.got {
		h := &s.got[i]
		got := cq.Completion{WRID: h.WRID, Status: h.Status}
		if h.Status == cq.StatusSuccess {
			got.Opcode, got.Flags, got.ByteLen, got.Imm, got.InvKey = h.Opcode, h.Flags, h.ByteLen, h.Imm, h.InvKey
		}
		if i >= len(*want) {
			note("%v: %s completion too many: %+v", c, what, got)
			continue
		}
		expected := (*want)[i]
		if expected.Status != cq.StatusSuccess {
			expected = cq.Completion{WRID: expected.WRID, Status: expected.Status}
		}
		if got != expected {
			note("%v: %s completion %+v, want %+v", c, what, got, expected)
		}
		c.w.seen.status[got.Status]++
	}
	if len(s.got) < len(*want) {
		note("%v: %s completions missing: %+v", c, what, (*want)[len(s.got):])
	}
}

// compareReplies holds what the peer got against what the model answers. One
// packet has exactly one outcome. In a batch of several, or with late memory, the
// NIC may acknowledge where it likes, and answer duplicates of one READ once.
func (c *conn) compareReplies(note func(string, ...any)) {
	last := c.resp.psn + mask24
	ackNow := reply{op: opAck, psn: last & mask24, syndrome: synACK, msn: c.resp.msn}
	for _, g := range c.got {
		switch {
		case g.op == opCNP:
			c.want.cnpSent++
		case g.op != opAck:
		case g.syndrome == nakSequence:
			c.want.sequenceSent++
		case g.syndrome>>5 == 1:
			c.want.rnrSent++
		}
		c.w.seen.reply[[2]byte{g.op, g.syndrome}]++
	}
	if !c.w.group && !c.w.lately {
		if c.resp.owed && !c.failed {
			c.replies = append(c.replies, ackNow)
		}
		if c.mute {
			c.replies = nil
		}
		if len(c.got) != len(c.replies) || !slices.EqualFunc(c.got, c.replies, equalReply) {
			note("%v: answered %v, want %v", c, c.got, c.replies)
		}
		return
	}
	c.compareBatch(note)
}

func equalReply(a, b reply) bool {
	a.again, b.again = false, false
	return assert.ObjectsAreEqual(a.payload, b.payload) && a.op == b.op && a.psn == b.psn && a.msn == b.msn &&
		a.syndrome == b.syndrome && a.original == b.original
}

func (c *conn) compareBatch(note func(string, ...any)) {
	want := slices.Clone(c.replies)
	highest := -1 << 30
	for _, g := range c.got {
		if i := slices.IndexFunc(want, func(r reply) bool { return equalReply(g, r) }); i >= 0 {
			want = slices.Delete(want, i, i+1)
			continue
		}
		at := distance(g.psn, c.resp.psn)
		tells := g.op == opAck && g.syndrome == synACK && slices.Contains(c.resp.done, ack{g.psn, g.msn})
		switch {
		case !tells:
			note("%v: answered %v in a batch, want %v", c, g, c.replies)
		case at < highest:
			note("%v: an ACK goes back (§4.12): %v", c, g)
		}
		highest = max(highest, at)
	}
	if c.resp.owed && !c.failed && !slices.ContainsFunc(c.got, c.tells) {
		note("%v: nothing acknowledges %#x, got %v", c, c.resp.owedFor, c.got)
	}
	var newest reply // what the peer is asked for at the end of the batch
	for _, r := range c.replies {
		if r.op == opAck {
			newest = r
		}
	}
	for _, r := range want {
		soft := r.op == opAck && (r.syndrome == nakSequence || r.syndrome>>5 == 1)
		if soft { // only the newest, once, if nothing has made up for it since
			said := slices.ContainsFunc(c.got, func(g reply) bool { return equalReply(g, r) })
			soft = said || c.resp.nak == 0 || c.failed || !equalReply(r, newest)
		}
		if !soft && !r.again && !c.mute {
			note("%v: no answer %v in a batch, got %v", c, r, c.got)
		}
	}
}

// tells reports whether a reply acknowledges what is owed.
func (c *conn) tells(g reply) bool {
	d := distance(g.psn, c.resp.owedFor)
	if g.op == opAck && g.syndrome != synACK {
		return d > 0
	}
	return d >= 0
}
