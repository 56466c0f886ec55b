package rc

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

// minWindowPackets is the smallest window that loss leaves: enough for a gap to
// be noticed by what follows it.
const minWindowPackets = 8

// window bounds what is unacknowledged, in bytes of [wr.PacketCost]-weighted
// packets and in PSNs (§3.5, §7.2). Loss halves the byte window, at most once
// for what was in flight; each acknowledged byte lets it grow by a quarter. Since
// recovery is go-back-N, a large window under loss mostly sends what the peer
// will drop.
type window struct {
	maxBytes, minBytes uint64
	maxPSNs            uint64
	bytes              uint64 // now
	recover            uint64 // no second cut before this sequence number is acknowledged
}

func (w *window) init(s *SendConfig, mtu uint64) {
	w.maxBytes = max(uint64(s.WindowBytes), mtu+wr.PacketCost)
	w.minBytes = min(minWindowPackets*(mtu+wr.PacketCost), w.maxBytes)
	w.maxPSNs = uint64(s.WindowPSNs)
	w.bytes = w.maxBytes
}

// admits reports whether psns packets that weigh cost may be unacknowledged.
func (w *window) admits(psns, cost uint64) bool { return psns <= w.maxPSNs && cost <= w.bytes }

// acked lets the window grow after cost was acknowledged.
func (w *window) acked(cost uint64) { w.bytes = min(w.maxBytes, w.bytes+cost/4) }

// lost halves the window, for loss or for a congestion notification, if una has passed what the last cut was for; hi is the
// end of what is in flight now.
func (w *window) lost(una, hi uint64) {
	if una < w.recover || una == hi {
		return
	}
	w.recover = hi
	w.bytes = max(w.minBytes, w.bytes/2)
}

// Bounds of the timeout that is derived from the round trip. The lower one is
// above the time for which a loaded host may leave a peer without a processor;
// what arrives late all the same makes early duplicates, which a peer takes
// (§3.12).
const (
	minTimeout       = 12 * time.Millisecond
	firstTimeout     = 20 * time.Millisecond // before anything was measured
	rttFactor        = 8
	maxBackoff       = 6 // doublings
	probesPerTimeout = 4
)

// roundTrip measures how long an acknowledgement takes, and gives a timeout that
// is shorter than the configured one.
type roundTrip struct {
	smooth  time.Duration
	backoff uint
	seq     uint64 // the sample ends when this is acknowledged
	sent    mono.Time
}

// start begins a sample with a packet that asks for an acknowledgement of
// everything before seq, unless one is under way.
func (r *roundTrip) start(seq uint64, now mono.Time) {
	if r.sent.IsZero() {
		r.seq, r.sent = seq, now
	}
}

// acked ends the sample when una has reached it.
func (r *roundTrip) acked(una uint64, now mono.Time) {
	r.backoff = 0
	if r.sent.IsZero() || una < r.seq {
		return
	}
	d := now.Sub(r.sent)
	r.sent = 0
	if r.smooth == 0 {
		r.smooth = d
		return
	}
	if d < r.smooth {
		r.smooth -= (r.smooth - d) / 2
		return
	}
	// A sample that a stall stretched must not carry the timeout away with it.
	r.smooth += (min(d, 2*r.smooth) - r.smooth) / 8
}

// cancel drops the sample: after a resend an answer does not tell which copy it
// is for.
func (r *roundTrip) cancel() { r.sent = 0 }

// timeout returns how long to wait for an answer, at most limit.
func (r *roundTrip) timeout(limit time.Duration, fixed bool) time.Duration {
	if fixed {
		return limit
	}
	d := firstTimeout
	if r.smooth != 0 {
		d = max(minTimeout, rttFactor*r.smooth)
	}
	// Even backed off it asks some times within the configured timeout: a probe
	// is one packet, and costs no retry.
	return min(limit, max(minTimeout, min(d<<min(r.backoff, maxBackoff), limit/probesPerTimeout)))
}
