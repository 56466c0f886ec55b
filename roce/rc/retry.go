package rc

import (
	"time"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// retryTimer holds the requester's timers and what is left of its patience.
type retryTimer struct {
	full            time.Duration // T of §3.12; 0: never
	fixed           bool
	retry, rnrRetry uint8 // configured
	retryLeft       uint8
	rnrLeft         uint8

	at       mono.Time // when to look for an answer; 0: off
	since    mono.Time // since when there has been none
	rnrUntil mono.Time // nothing is sent before; 0: not waiting
}

func (t *retryTimer) init(s *SendConfig) {
	*t = retryTimer{full: AckTimeout(s.Timeout), fixed: s.FixedTimeout, retry: s.RetryCount, rnrRetry: s.RNRRetry}
	t.progress()
}

// progress restores the patience.
func (t *retryTimer) progress() {
	t.retryLeft, t.rnrLeft = t.retry, t.rnrRetry
	t.since, t.rnrUntil = 0, 0
}

func (t *retryTimer) running() bool { return !t.at.IsZero() }

func (t *retryTimer) stop() { t.at, t.since = 0, 0 }

// arm waits for another d; a full timeout counts from the first wait without
// progress.
func (t *retryTimer) arm(now mono.Time, d time.Duration) {
	if t.full == 0 {
		return
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.at = now.Add(d)
	if full := t.since.Add(t.full); full.Before(t.at) {
		t.at = full
	}
}

// deadline returns when a timer fires next.
func (r *requester) deadline() mono.Time {
	if !r.timer.rnrUntil.IsZero() {
		return r.timer.rnrUntil
	}
	if r.held > 0 {
		return 0 // the packet has not left yet
	}
	return r.timer.at
}

// expire fires what is due.
func (r *requester) expire(now mono.Time) {
	t := &r.timer
	if !t.rnrUntil.IsZero() {
		if !now.Before(t.rnrUntil) {
			t.rnrUntil = 0
		}
		return
	}
	if t.running() && r.held == 0 && !now.Before(t.at) {
		r.timeout(now)
	}
}

// timeout has the oldest unanswered packet sent again. Only a wait of the whole
// configured timeout costs a retry (§3.12); the shorter ones before it do not.
func (r *requester) timeout(now mono.Time) {
	t := &r.timer
	t.at = 0
	if r.una == r.hi {
		return
	}
	if now.Sub(t.since) >= t.full {
		r.c.common.stats.Timeouts++
		if !r.spendRetry() {
			return
		}
		t.since = now
	} else {
		r.c.common.stats.EarlyTimeouts++
	}
	r.rtt.backoff++
	r.startProbe()
	r.arm(now)
}

// spendRetry takes one of the retries; without one left the oldest unanswered
// request fails.
func (r *requester) spendRetry() bool {
	if r.timer.retryLeft == 0 {
		r.fail(r.ack, Cause{Status: cq.StatusRetryExceeded, PSN: wr.Wire(r.una)})
		return false
	}
	r.timer.retryLeft--
	return true
}

// impliedNAK repairs a response that passed an unanswered READ or atomic: once,
// from the oldest unanswered packet (§3.10).
func (r *requester) impliedNAK(now mono.Time) {
	if r.seqErr || !r.timer.rnrUntil.IsZero() {
		return
	}
	r.c.common.stats.ImpliedNAKs++
	r.seqErr = true
	r.lost()
	r.arm(now)
}

// nak acts on a NAK or RNR NAK for the packet at una (§3.14, §3.15).
func (r *requester) nak(now mono.Time, s roce.Syndrome) {
	if s.Kind() == roce.AckRNR {
		r.rnr(now, s)
		return
	}
	switch s {
	case roce.SynNakSeq:
		r.seqNAK(now)
	case roce.SynNakInvalid:
		r.fatalNAK(s, cq.StatusRemoteInvalid)
	case roce.SynNakAccess:
		r.fatalNAK(s, cq.StatusRemoteAccess)
	case roce.SynNakOp:
		r.fatalNAK(s, cq.StatusRemoteOperation)
	case roce.SynNakRD:
		r.fatalNAK(s, cq.StatusRemoteInvalidRD)
	}
}

func (r *requester) fatalNAK(s roce.Syndrome, status cq.Status) {
	r.c.common.stats.FatalNAKsReceived++
	r.fail(r.ack, Cause{Status: status, Syndrome: s, PSN: wr.Wire(r.una)})
}

// seqNAK goes back to the packet the peer misses, once for each (§3.15).
func (r *requester) seqNAK(now mono.Time) {
	if !r.timer.rnrUntil.IsZero() || (r.nakDone && r.nakAt == r.una) {
		return
	}
	r.c.common.stats.SeqNAKsReceived++
	r.nakDone, r.nakAt = true, r.una
	r.lost()
	r.arm(now)
}

// rnr waits for the peer to post a receive: at least the whole time of its
// code, with a margin for its clock (§3.14, R5, H1).
func (r *requester) rnr(now mono.Time, s roce.Syndrome) {
	t := &r.timer
	if !t.rnrUntil.IsZero() {
		return
	}
	r.c.common.stats.RNRsReceived++
	if t.rnrLeft == 0 {
		r.fail(r.ack, Cause{Status: cq.StatusRNRRetryExceeded, Syndrome: s, PSN: wr.Wire(r.una)})
		return
	}
	if t.rnrRetry != 7 {
		t.rnrLeft--
	}
	t.retryLeft = t.retry // the peer is alive
	r.rewind()
	t.stop()
	d := s.RNRDelay()
	t.rnrUntil = now.Add(d + d/16)
}

// setRetry changes the patience of a quiesced connection.
func (r *requester) setRetry(timeout, retry, rnrRetry uint8) {
	r.timer.full = AckTimeout(timeout)
	r.timer.retry, r.timer.rnrRetry = retry, rnrRetry
	r.timer.retryLeft, r.timer.rnrLeft = retry, rnrRetry
}
