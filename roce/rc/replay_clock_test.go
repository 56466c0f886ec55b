package rc_test

import (
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
)

// clock is an endpoint's virtual time, and the rules about when requests may
// leave.
type clock struct {
	e   *endpoint
	now mono.Time
	pos int // of the recorded packet that is being played

	timer    bool // what leaves now leaves because a timer fired
	waiting  bool // an RNR NAK came and nothing has left since
	notUntil mono.Time
	last     map[roce.PSN]mono.Time // when a request packet left last
}

func (c *clock) setUp(e *endpoint) { c.e, c.last = e, map[roce.PSN]mono.Time{} }

// advance fires every timer up to a time and goes there.
func (c *clock) advance(to mono.Time) {
	for {
		at := c.e.engine.Deadline()
		if at.IsZero() || to.Before(at) {
			break
		}
		c.fire(at)
	}
	c.now = max(c.now, to)
}

// fire lets the timer that is due at a time expire.
func (c *clock) fire(at mono.Time) {
	c.now = max(c.now, at)
	c.e.engine.Expire(c.now)
	c.timer = true
	c.e.drain()
	c.timer = false
	require.NotEqual(c.e.t, at, c.e.engine.Deadline(), "a timer does not move on")
}

// finish lets the timers run out: what is outstanding then has failed.
func (c *clock) finish() {
	for range 20 {
		at := c.e.engine.Deadline()
		if at.IsZero() {
			return
		}
		c.fire(at)
	}
	c.e.t.Fatal("timers go on after the recording has ended")
}

// heard notes the waiting time that an RNR NAK demands (§3.14).
func (c *clock) heard(p *roce.Packet) {
	if p.Opcode == roce.OpAcknowledge && p.AETH.Syndrome.Kind() == roce.AckRNR && !c.now.Before(c.notUntil) {
		c.notUntil = c.now.Add(roce.RNRTimer(p.AETH.Syndrome.Value()))
		c.waiting = true
	}
}

// left checks the time of a request: not before an RNR NAK's time is over, and
// on a timeout between T and 4T after the same packet left last (§3.12).
func (c *clock) left(o *emission) {
	require.False(c.e.t, c.now.Before(c.notUntil), "sent during an RNR NAK's wait: %v", &o.p)
	if before, again := c.last[o.p.PSN]; again && c.timer && !c.waiting {
		o.probe = true
		timeout := rc.AckTimeout(c.e.c.send.Timeout)
		require.GreaterOrEqual(c.e.t, c.now.Sub(before), timeout, "resent too early: %v", &o.p)
		require.LessOrEqual(c.e.t, c.now.Sub(before), 4*timeout, "resent too late: %v", &o.p)
	}
	c.waiting = false
	c.last[o.p.PSN] = c.now
}
