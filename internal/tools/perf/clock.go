package perf

import "time"

// clock measures one run: all of it, or with a duration what lies between its
// first and its last quarter.
type clock struct {
	duration time.Duration // 0 counts messages instead
	start    time.Time     // zero until begin
	last     time.Time     // of the newest completion that counts
	counted  uint64        // messages in the measured part
	over     bool          // a duration's end has come
	peak     *peak         // nil is not wanted

	countSent, countReceived bool // what is measured
}

// begin starts the time.
func (c *clock) begin(now time.Time) {
	if c.start.IsZero() {
		c.start, c.last = now, now
	}
}

func (c *clock) begun() bool { return !c.start.IsZero() }

// end returns when a duration is over.
func (c *clock) end() time.Time { return c.start.Add(c.duration) }

// margin is what does not count at either end of a duration, as in perftest.
func (c *clock) margin() time.Duration { return c.duration / 4 }

// expired notes whether a duration is over.
func (c *clock) expired() bool {
	if c.duration > 0 && c.begun() && !c.over {
		c.over = !time.Now().Before(c.end())
	}
	return c.over
}

func (c *clock) posted(n int) {
	if c.peak != nil {
		c.peak.posted(n, time.Since(c.start))
	}
}

// completed notes that n messages completed now.
func (c *clock) completed(n uint64, now time.Time) {
	if c.peak != nil {
		c.peak.completed(n, now.Sub(c.start))
	}
	if c.countSent {
		c.count(n, now)
	}
}

// arrived notes a message received. Nobody here knows when the first was sent.
func (c *clock) arrived(now time.Time) {
	c.begin(now)
	if c.countReceived {
		c.count(1, now)
	}
}

func (c *clock) count(n uint64, now time.Time) {
	if c.duration > 0 {
		if t := now.Sub(c.start); t < c.margin() || t > c.duration-c.margin() {
			return
		}
	}
	c.counted += n
	c.last = now
}

// elapsed is how long the measured part took.
func (c *clock) elapsed() time.Duration {
	if c.duration > 0 {
		return c.duration - 2*c.margin()
	}
	return max(c.last.Sub(c.start), time.Nanosecond)
}

// peak remembers when each message was posted and when it was known to be
// complete, to find the stretch that went fastest.
type peak struct {
	out []time.Duration // posted
	in  []time.Duration // completed; several completions come as one, the last
	mod int
}

// peakStretch bounds the stretches that are looked at, in messages: beyond it
// none is much faster than the shorter ones in it.
const peakStretch = 1024

func (p *peak) posted(n int, t time.Duration) {
	for range n {
		p.out = append(p.out, t)
	}
}

func (p *peak) completed(n uint64, t time.Duration) {
	for range n {
		p.in = append(p.in, t)
	}
}

// perMessage returns the least time a message took in any stretch from a post to
// a completion, or 0 when nothing is known.
func (p *peak) perMessage() time.Duration {
	best := time.Duration(0)
	for i := range p.in {
		for j := (i/p.mod+1)*p.mod - 1; j < len(p.in) && j < i+peakStretch; j += p.mod {
			if t := (p.in[j] - p.out[i]) / time.Duration(j-i+1); t > 0 && (best == 0 || t < best) {
				best = t
			}
		}
	}
	return best
}
