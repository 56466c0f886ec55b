package rc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

func adaptive(retries uint8) opt {
	return withSend(func(s *SendConfig) { s.FixedTimeout, s.RetryCount = false, retries })
}

// A NAK shows that the peer is alive: even without retries, and with nothing new
// acknowledged by it, it only brings the packet back (§3.15).
func TestNAKCostsNoRetry(t *testing.T) {
	a, b := newPair(t, adaptive(0))
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpWrite, 0, 8))
	a.post(a.req(3, wr.OpWrite, 0, 8))
	a.drain()
	a.deliver()
	b.drain()
	b.deliverAll() // the ACK that leaves the NAK nothing to acknowledge
	a.lose(1)
	a.deliverAll()
	b.want("NAK-seq 1 msn=1")
	b.deliverAll()
	a.want("WRITE_ONLY 1 A va+0 len=8 [8]", "WRITE_ONLY 2 A va+0 len=8 [8]")
	a.exchange()
	a.wantDone("1:success", "2:success", "3:success")
}

// So does an implied NAK (§3.10).
func TestImpliedNAKCostsNoRetry(t *testing.T) {
	a, b := newPair(t, adaptive(0))
	a.post(a.req(1, wr.OpRead, 0, 100))
	a.post(a.req(2, wr.OpWrite, 0, 8))
	a.drain()
	a.deliverAll()
	b.lose(1)
	b.deliverAll()
	require.EqualValues(t, 1, a.rc.Stats().ImpliedNAKs)
	a.exchange()
	a.wantDone("1:success", "2:success")
}

// However often it asks in between, a requester gives up after exactly
// retry_cnt+1 times the configured timeout without progress, and any progress
// gives it all of its patience back.
func TestPatience(t *testing.T) {
	for _, retries := range []uint8{0, 1, 7} {
		a, b := newPair(t, adaptive(retries))
		all := time.Duration(retries+1) * timeout14
		wait := func() { // as long as there is patience, and everything is lost
			for end := a.now.Add(all - 1); a.now < end && !a.rc.Failed(); {
				a.advance(min(a.rc.Deadline(), end).Sub(a.now))
				a.sent = a.sent[:0]
			}
		}
		a.post(a.req(1, wr.OpWrite, 0, 3000))
		a.drain()
		first := a.sent[0]
		a.lose(3)
		wait()
		require.False(t, a.rc.Failed(), "%d retries", retries)
		// One more packet of the message is acknowledged at the last moment.
		first[8] |= 0x80
		b.receive(first)
		b.drain()
		b.deliverAll()
		a.drain()
		a.sent = a.sent[:0]
		wait()
		require.False(t, a.rc.Failed(), "%d retries", retries)
		require.Positive(t, a.rc.Stats().EarlyTimeouts)
		a.advance(1)
		require.True(t, a.rc.Failed(), "%d retries", retries)
		a.wantDone("1:transport retry counter exceeded")
	}
}

// Each response to a READ is progress: one that trickles in is waited for without
// end.
func TestReadProgressRestoresPatience(t *testing.T) {
	a, b := newPair(t, adaptive(0))
	fill(b.mem[:8000], 3)
	a.post(a.req(1, wr.OpRead, 0, 8000))
	a.drain()
	a.deliverAll()
	for len(b.sent) > 0 {
		a.advance(timeout14 - time.Millisecond)
		a.sent = a.sent[:0]
		b.deliver()
	}
	a.wantDone("1:success")
	require.Equal(t, b.mem[:8000], a.mem[:8000])
}

// What a probe's answer says beyond the probe is about first copies: a peer that
// is only slow gets nothing again but the probe and the last packet.
func TestProbesOfSlowPeer(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	fill(a.mem, 1)
	a.post(a.req(1, wr.OpWrite, 0, 60*1024))
	a.drain()
	flight := a.sent
	a.sent = nil
	a.advance(firstTimeout)
	a.want("WRITE_FIRST 0 A va+0 len=61440 [1024]")
	probe := a.take()
	for _, p := range flight {
		b.receive(p)
		b.drain()
		b.deliverAll()
	}
	a.want("WRITE_LAST 59 A [1024]")
	b.receive(probe)
	a.exchange()
	a.wantDone("1:success")
	require.True(t, a.rc.req.win.lossless, "nothing was lost")
	require.Equal(t, a.mem[:60*1024], b.mem[:60*1024])
}

// A peer that was only slow answers READs one by one, so the first answer ends at the
// probe. Nothing was lost: nothing more is sent again than the last READ, the window and
// the timer stay what they are, and new work goes on.
func TestSlowPeerAnswersReadsOneByOne(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	fill(b.mem, 1)
	for i := range 4 {
		a.post(a.req(uint64(i), wr.OpRead, 64*i, 64))
	}
	a.drain()
	flight := a.sent
	a.sent = nil
	a.advance(firstTimeout)
	a.want("READ_REQ 0 A va+0 len=64")
	probe := a.take()
	b.receive(flight[0])
	b.drain()
	b.deliverAll()
	a.want("READ_REQ 3 A va+192 len=64")
	end := a.take()
	a.post(a.req(4, wr.OpRead, 256, 64))
	a.drain()
	a.want("READ_REQ 4 A va+256 len=64")
	for _, p := range append(flight[1:], probe, end) {
		b.receive(p)
		b.drain()
		b.deliverAll()
	}
	a.exchange()
	a.wantDone("0:success", "1:success", "2:success", "3:success", "4:success")
	require.Equal(t, b.mem[:320], a.mem[:320])
	require.True(t, a.rc.req.win.calm())
	s := a.rc.Stats()
	require.EqualValues(t, 2, s.Retransmitted)
	require.Zero(t, s.SeqNAKsReceived+s.ImpliedNAKs)
}

// When new work leaves with the answer, it tells of a gap as well as the last packet
// does, and that is not sent again.
func TestNewWorkAfterProbe(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	for i := range 5 { // one more than the depth
		a.post(a.req(uint64(i), wr.OpRead, 64*i, 64))
	}
	a.drain()
	a.advance(firstTimeout)
	a.deliver()
	b.drain()
	b.deliverAll()
	a.lose(4)
	a.want("READ_REQ 4 A va+256 len=64")
	a.deliverAll()
	b.want("NAK-seq 1 msn=1")
	b.deliverAll()
	a.exchange()
	a.wantDone("0:success", "1:success", "2:success", "3:success", "4:success")
}

// An answer that comes while the probe has not left yet makes it needless.
func TestAnswerBeforeProbe(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	a.post(a.req(1, wr.OpRead, 0, 64))
	a.post(a.req(2, wr.OpRead, 64, 64))
	a.drain()
	a.deliverAll()
	a.now = a.now.Add(firstTimeout)
	a.rc.Expire(a.now)
	b.deliver()
	a.drain()
	a.want()
	b.deliver()
	a.wantDone("1:success", "2:success")
}

// Where the answers of READs were lost, that to the last of them passes the gap.
func TestProbeFindsLostAnswers(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	fill(b.mem, 1)
	for i := range 4 {
		a.post(a.req(uint64(i), wr.OpRead, 2000*i, 2000))
	}
	a.drain()
	a.deliverAll()
	b.lose(8)
	a.advance(firstTimeout)
	a.want("READ_REQ 0 A va+0 len=2000")
	a.deliverAll()
	b.deliverAll()
	a.want("READ_REQ 6 A va+6000 len=2000")
	a.deliverAll()
	b.deliver()
	a.drain()
	a.want("READ_REQ 2 A va+2000 len=2000", "READ_REQ 4 A va+4000 len=2000", "READ_REQ 6 A va+6000 len=2000")
	require.EqualValues(t, 1, a.rc.Stats().ImpliedNAKs)
	require.False(t, a.rc.req.win.calm())
	a.exchange()
	a.wantDone("0:success", "1:success", "2:success", "3:success")
	require.Equal(t, b.mem[:8000], a.mem[:8000])
}

// A peer that says nothing of what it misses answers the second probe in a row as it
// did the first; then all is sent again.
func TestPeerThatTellsNoGap(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	a.post(a.req(1, wr.OpWrite, 0, 4000))
	a.drain()
	a.lose(4)
	for i := range 2 {
		a.advance(a.rc.Deadline().Sub(a.now))
		require.Len(t, a.sent, 1)
		a.deliverAll()
		b.deliverAll()
		if i == 0 {
			a.want("WRITE_LAST 3 A [928]")
			a.lose(1)
		}
	}
	a.want("WRITE_MIDDLE 2 [1024]", "WRITE_LAST 3 A [928]")
	a.exchange()
	a.wantDone("1:success")
}

// Of a peer that dropped what followed a gap, the last packet brings a NAK.
func TestProbeFindsLoss(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	a.post(a.req(1, wr.OpWrite, 0, 4000))
	a.drain()
	a.lose(1)
	a.deliverAll()
	b.lose(1) // the NAK
	packets := a.rc.req.win.packets
	a.advance(firstTimeout)
	a.want("WRITE_FIRST 0 A va+0 len=4000 [1024]")
	a.deliverAll()
	b.want("ACK 0 msn=0")
	b.deliverAll()
	a.want("WRITE_LAST 3 A [928]")
	require.Equal(t, packets, a.rc.req.win.packets)
	a.deliverAll()
	b.want("NAK-seq 1 msn=0")
	b.deliverAll()
	a.want("WRITE_MIDDLE 1 [1024]", "WRITE_MIDDLE 2 [1024]", "WRITE_LAST 3 A [928]")
	require.Less(t, a.rc.req.win.packets, packets)
	a.exchange()
	a.wantDone("1:success")
}

// While packets are being lost the timer is short; it rests once none are.
func TestTimeoutFollowsLoss(t *testing.T) {
	var r roundTrip
	r.start(0, 1, 1)
	r.acked(1, mono.Time(1+50*time.Microsecond))
	require.Equal(t, calmTimeout, r.timeout(timeout14, true))
	require.Equal(t, lossyTimeout, r.timeout(timeout14, false))
	r.backoff = 2
	require.Equal(t, 4*lossyTimeout, r.timeout(timeout14, false))
	require.Equal(t, lossyTimeout/8, r.timeout(lossyTimeout/8, false), "never above the configured one")
	var w window
	w.init(&SendConfig{WindowBytes: 1 << 20, WindowPSNs: 256}, 1024)
	require.True(t, w.calm())
	w.lost()
	require.False(t, w.calm())
	w.acked(calmAfter, 10)
	require.True(t, w.calm())
}

// §7.2: each resend makes the window smaller, acknowledgements of what filled it
// restore it.
func TestWindowShrinksAndGrows(t *testing.T) {
	a, b := newPair(t)
	win := &a.rc.req.win
	require.EqualValues(t, firstWindow, win.packets)
	a.post(a.req(1, wr.OpWrite, 0, 500_000))
	a.drain()
	a.lose(1)
	a.deliverAll()
	b.deliverAll()
	require.EqualValues(t, firstWindow-firstWindow/lossCut, win.packets)
	a.lose(1)
	a.deliverAll()
	require.Len(t, a.rc.Completions(), 0)
	b.want() // its NAK has been sent, the peer went back: only the timer helps
	for range 20 {
		a.post(a.req(2, wr.OpWrite, 0, 8))
	}
	a.advance(timeout14)
	a.exchange()
	require.Less(t, win.packets, win.max)
	for i := range 60 {
		a.post(a.req(uint64(i), wr.OpWrite, 0, 1_000_000))
		a.exchange()
	}
	require.Equal(t, win.max, win.packets)
	// What does not fill the window is no reason for a larger one.
	win.packets = 100
	for i := range 60 {
		a.post(a.req(uint64(i), wr.OpWrite, 0, 8))
		a.exchange()
	}
	require.EqualValues(t, 100, win.packets)
}

// The window begins small, doubles while nothing is lost, and is then what the
// pipe holds.
func TestWindowFindsPipe(t *testing.T) {
	var w window
	w.init(&SendConfig{WindowBytes: 4 << 20, WindowPSNs: 1024}, 1024)
	require.True(t, w.admits(firstWindow, 4<<20))
	require.False(t, w.admits(firstWindow+1, 0))
	for n := uint64(firstWindow); n < 1024; n *= 2 {
		require.Equal(t, n, w.packets)
		w.acked(n, n)
	}
	require.EqualValues(t, 1024, w.packets)
	// 1000 packets took 2 ms, and a round trip takes 100 µs: 100 fit.
	for range 20 {
		w.measured(1000, 2*time.Millisecond, 100*time.Microsecond)
	}
	require.EqualValues(t, 1024, w.packets, "without loss a queue does no harm")
	w.lost()
	require.InDelta(t, 100, float64(w.packets), 5)
	for range 20 {
		w.measured(10, time.Second, 100*time.Microsecond)
	}
	w.lost()
	require.InDelta(t, 75, float64(w.packets), 5, "few packets say nothing about the pipe")
	for range 100 {
		w.lost()
	}
	require.EqualValues(t, minWindow, w.packets)
}

// A window that loses after long round trips alone is held to what the way holds; one
// loss after a short one, and chance is at work.
func TestWindowOverflows(t *testing.T) {
	var w window
	w.init(&SendConfig{WindowBytes: 4 << 20, WindowPSNs: 1024}, 1024)
	for range fullAfter {
		require.False(t, w.overflows())
		w.blame(true)
	}
	require.True(t, w.overflows())
	w.measured(100, 800*time.Microsecond, 400*time.Microsecond)
	w.packets = 100
	w.lost()
	require.EqualValues(t, 100*450/800, w.packets, "an eighth above the shortest round trip")
	w.acked(1000, w.packets)
	require.EqualValues(t, 56, w.packets)
	w.blame(false)
	require.False(t, w.overflows())
	w.acked(64, w.packets)
	require.EqualValues(t, 58, w.packets, "it tries more again")
}

func TestLongRoundTrip(t *testing.T) {
	const us = time.Microsecond
	var r roundTrip
	sample := func(d time.Duration) {
		r.start(0, 1, 1)
		r.acked(1, mono.Time(1).Add(d))
	}
	want := func(long, ok bool) {
		t.Helper()
		gotLong, gotOK := r.long()
		require.Equal(t, [2]bool{long, ok}, [2]bool{gotLong, gotOK})
	}
	want(false, false)
	sample(100 * us)
	want(false, true) // neither least nor most is known to be another
	want(false, false)
	sample(300 * us)
	want(true, true)
	sample(150 * us)
	want(false, true)
	sample(250 * us)
	want(true, true)
}

// What losses cost, on processors and links as they are: not more than a bound
// that go-back-N with the best constant window would about meet.
func TestLossModel(t *testing.T) {
	for _, c := range []struct {
		load         string
		loss         float64
		speed, extra float64 // at least of the speed without loss; at most sent for each packet
	}{
		{"loopback", 0.001, 0.75, 1.3},
		{"loopback", 0.01, 0.35, 1.8},
		{"loopback", 0.05, 0.05, 2.2},
		{"rxe", 0.01, 0.5, 1.7},
		{"rxe", 0.05, 0.15, 2.5},
		{"far", 0.001, 0.6, 1.7},
		{"far", 0.01, 0.08, 2.2},
		{"read", 0.01, 0.3, 2.5},
		{"noisy", 0.001, 0.6, 1.5},
		{"noisy", 0.01, 0.17, 1.8},
	} {
		load := modelLoads[0]
		for _, l := range modelLoads {
			if l.name == c.load {
				load = l
			}
		}
		var took, none time.Duration
		var sent, packets uint64
		for seed := range uint64(2) {
			r := runModel(t, load, c.loss, seed+1)
			took, sent, packets = took+r.took, sent+r.sent, packets+r.packets
			none += runModel(t, load, 0, seed+1).took
		}
		speed, extra := none.Seconds()/took.Seconds(), float64(sent)/float64(packets)
		t.Logf("%-8s %4.1f %% loss: %.2f of the speed without, %.2f sent for each packet", c.load, 100*c.loss, speed, extra)
		require.Greater(t, speed, c.speed, "%+v", c)
		require.Less(t, extra, c.extra, "%+v", c)
	}
}

// What counts as acknowledged is each packet once, when its answer is taken: nothing that
// is sent again, and no answer that comes again or ahead of its turn.
func TestAcknowledgedIsProgress(t *testing.T) {
	a, b := newPair(t)
	acked := func() uint64 { return a.rc.Stats().Acknowledged }
	a.post(a.req(1, wr.OpWrite, 0, 3000))
	a.post(a.req(2, wr.OpRead, 0, 3000))
	for range 3 {
		a.advance(timeout14)
		a.drain()
		a.lose(len(a.sent))
	}
	require.Zero(t, acked())
	require.NotZero(t, a.rc.Stats().Retransmitted)
	a.advance(timeout14) // a probe
	a.drain()
	a.deliverAll()
	b.drain()
	b.deliverAll()
	require.EqualValues(t, 1, acked())
	a.drain()
	a.deliverAll() // the last packet once more
	b.want("NAK-seq 1 msn=0")
	b.deliverAll()
	require.EqualValues(t, 1, acked())
	a.drain() // the rest
	a.deliverAll()
	b.drain()
	answer := b.sent
	b.sent = nil
	a.receive(answer[len(answer)-1]) // its gap asks for the READ again, and acknowledges the WRITE
	require.EqualValues(t, 3, acked())
	for range 2 {
		for _, p := range answer {
			a.receive(p)
		}
		require.EqualValues(t, 6, acked())
	}
	a.exchange()
	a.wantDone("1:success", "2:success")
}
