package rc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// mode is a way of playing a recording.
type mode struct {
	// batched answers only when a run of requests is over, as a NIC does that
	// reads many packets at once; otherwise each packet is answered.
	batched bool
	// ask sets A on duplicates that do not have it, to see what they would get
	// (silentDuplicate).
	ask bool
	// readAtOnce plays the recording earlier when our engine has asked for the
	// rest of a READ before the recorded one did (readAtOnce).
	readAtOnce bool
}

// outcome is what our engine did in place of one end of a recording.
type outcome struct {
	requests, responses []emission
	sent, received      []cq.Completion
	memory              []byte
	failed              bool
	asked               map[int]bool // positions of the duplicates that mode.ask touched
	batches             map[int]int  // the batch of each request that was played
	executed            map[int]int  // how far requests had been executed after it
	shifted             time.Duration
}

// player plays one end of a recording.
type player struct {
	*endpoint
	how  mode
	out  *outcome
	next int  // the in-sequence request of the other end that comes next
	open bool // packets of the batch have been accepted and not answered
	nth  int  // of the batch
}

// play feeds an endpoint what the other end of the recording sent, at the
// recorded times, and posts the recorded work requests.
func play(t testing.TB, c *connection, end side, how mode) *outcome {
	t.Helper()
	o := &outcome{asked: map[int]bool{}, batches: map[int]int{}, executed: map[int]int{}}
	p := &player{endpoint: newEndpoint(t, c, end), how: how, out: o}
	receives := c.receivesPosted()
	for i := range c.packets {
		k := &c.packets[i]
		if k.from == end || k.p.Opcode.IsResponse() {
			p.answer()
		}
		if k.from == end && how.readAtOnce {
			o.shifted += p.ahead(k, o.shifted)
		}
		p.advance(k.at.Add(-o.shifted))
		p.pos = i
		if i == receives {
			p.postReceives()
		}
		switch {
		case k.from == end:
			p.postMessages(i)
		case !k.lost:
			p.feed(k)
		}
	}
	p.answer()
	p.finish()
	p.checkInvalidated()
	o.requests, o.responses, o.sent, o.received = p.requests, p.responses, p.sent, p.received
	o.memory, o.failed = p.mem.bytes, p.engine.Failed()
	return o
}

// answer ends a batch.
func (p *player) answer() {
	if p.open {
		p.drain()
		p.open = false
		p.nth++
	}
}

// feed gives a packet to the engine and, unless it belongs to a batch, lets it
// answer.
func (p *player) feed(k *packet) {
	rec := k.p
	p.heard(&rec)
	if rec.Opcode.IsResponse() {
		p.accept(rec)
		p.drain()
		return
	}
	if p.how.ask && p.c.offset(k.from, rec.PSN) < p.next && !rec.AckReq && !endsMessage(rec.Opcode) {
		rec.AckReq, p.out.asked[k.pos] = true, true
	}
	if p.open && p.engine.ReadsPending() && rec.Opcode != roce.OpReadRequest {
		p.drain() // the contract of ReadsPending
	}
	if rec.Opcode == roce.OpReadRequest {
		p.store(&rec)
	}
	answered := len(p.responses)
	p.accept(rec)
	p.out.batches[k.pos], p.open = p.nth, true
	if !p.how.batched {
		p.answer()
		p.next = p.c.sequence(k, p.next, p.responses[answered:])
		p.out.executed[k.pos] = p.next
	}
}

// sequence is the request expected next after packet k was answered.
func (c *connection) sequence(k *packet, next int, answers []emission) int {
	if c.offset(k.from, k.p.PSN) != next {
		return next
	}
	if len(answers) == 1 && answers[0].p.AETH.Syndrome.Kind() == roce.AckRNR {
		return next
	}
	return next + psns(&k.p, c.mtu)
}

// postMessages posts what the recorded end had posted when it sent the packet
// at position pos.
func (e *endpoint) postMessages(pos int) {
	list := e.c.sends[e.side]
	bunch := e.c.script != nil && e.c.script.options[e.side]["b"] != 0
	posted := false
	for i := range list {
		switch {
		case bunch && pos == list[0].pos:
		case !bunch && pos == list[i].pos:
			if e.c.script != nil { // vt waits for each completion
				require.Len(e.t, e.sent, i, "completions before message %d", i)
			}
		default:
			continue
		}
		e.post(i)
		posted = true
	}
	if posted {
		e.drain()
	}
}

// ahead is how much earlier than the recorded end, whose clock was set back by
// shifted already, our engine sent the packet k.
func (e *endpoint) ahead(k *packet, shifted time.Duration) time.Duration {
	if k.p.Opcode != roce.OpReadRequest {
		return 0
	}
	for i := range e.requests {
		if o := &e.requests[i]; wire(&o.p) == wire(&k.p) {
			return max(0, k.at.Add(-shifted).Sub(o.at))
		}
	}
	return 0
}

// store puts what a READ of a stock tool returned into the memory that it reads:
// the application had stored it there, and no packet tells.
func (e *endpoint) store(p *roce.Packet) {
	for i := range e.c.sends[e.side.other()] {
		m := &e.c.sends[e.side.other()][i]
		if e.c.script == nil && m.first == p.PSN {
			copy(e.mem.find(m.rkey, m.va, m.length), e.c.returned(e.side.other(), m))
		}
	}
}

// checkInvalidated: after a SEND with invalidate has succeeded, the key that it
// named is good for nothing and the completion says so (§4.10).
func (e *endpoint) checkInvalidated() {
	for i := range e.received {
		done := &e.received[i]
		if done.Flags&cq.WithInv == 0 || done.Status != cq.StatusSuccess {
			continue
		}
		require.NotNil(e.t, e.c.script)
		r := e.keys[e.c.script.ends[passive].rkey]
		require.Equal(e.t, r.RKey(), done.InvKey)
		_, err := e.pd.Remote(done.InvKey, r.Addr(), 1, 0)
		require.Error(e.t, err)
	}
}
