package rc

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Bounds of the timeout that is derived from the round trip. As long as nothing is
// lost it only guards, and the lower one is above the time for which a loaded host
// may leave a peer without a processor. Once packets are lost, so are resends and
// NAKs, each of which only the timer finds out. Then it is shorter: a probe that
// comes too early is one packet more (§3.12). It follows the round trip from the
// lower bound on.
const (
	calmTimeout      = 12 * time.Millisecond
	lossyTimeout     = 200 * time.Microsecond
	firstTimeout     = 20 * time.Millisecond // before anything was measured
	rttFactor        = 4
	maxBackoff       = 6 // doublings
	probesPerTimeout = 4
)

// roundTrip measures how long an acknowledgement takes, and gives a timeout that
// is shorter than the configured one.
type roundTrip struct {
	smooth  time.Duration
	least   time.Duration // it took lately, with no queue
	most    time.Duration // it took lately
	last    time.Duration // it took; 0: none was measured since a loss
	seq     uint64        // the sample ends when this is acknowledged
	flight  uint32        // how far before it what was acknowledged when the sample began
	backoff uint32
	sent    mono.Time
}

// start begins a sample with a packet that asks for an acknowledgement of
// everything before seq, unless one is under way; una has been acknowledged.
func (r *roundTrip) start(una, seq uint64, now mono.Time) {
	if r.sent.IsZero() {
		r.seq, r.flight, r.sent = seq, uint32(seq-una), now
	}
}

// acked ends the sample when una has reached it, and reports how long it took.
func (r *roundTrip) acked(una uint64, now mono.Time) (d time.Duration, ok bool) {
	r.backoff = 0
	if r.sent.IsZero() || una < r.seq {
		return 0, false
	}
	d = now.Sub(r.sent)
	r.sent = 0
	if r.least == 0 || d < r.least {
		r.least = d
	} else {
		r.least += min(d-r.least, r.least/256)
	}
	r.last, r.most = d, max(d, r.most-(r.most-d)/64)
	switch {
	case r.smooth == 0:
		r.smooth = d
	case d < r.smooth:
		r.smooth -= (r.smooth - d) / 2
	default:
		// A sample that a stall stretched must not carry the timeout away with it.
		r.smooth += (min(d, 2*r.smooth) - r.smooth) / 8
	}
	return d, true
}

// long reports whether the newest round trip before a loss was nearer to the longest
// than to the shortest one; ok is false when none has ended since the loss before.
func (r *roundTrip) long() (long, ok bool) {
	d := r.last
	r.last = 0
	return d > r.least+r.least/8 && d-r.least > r.most-d, d != 0
}

// from is what was acknowledged when the sample began that ended last.
func (r *roundTrip) from() uint64 { return r.seq - uint64(r.flight) }

// cancel drops the sample: after a resend an answer does not tell which copy it
// is for.
func (r *roundTrip) cancel() { r.sent = 0 }

// timeout returns how long to wait for an answer, at most limit.
func (r *roundTrip) timeout(limit time.Duration, calm bool) time.Duration {
	least := lossyTimeout
	if calm {
		least = calmTimeout
	}
	d := firstTimeout
	if r.smooth != 0 {
		d = max(least, rttFactor*r.smooth)
	}
	// Even backed off it asks some times within the configured timeout: a probe
	// is one packet, and costs no retry.
	return min(limit, max(least, min(d<<min(r.backoff, maxBackoff), limit/probesPerTimeout)))
}
