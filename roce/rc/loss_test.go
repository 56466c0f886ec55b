package rc

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce/wr"
)

const timeout14 = 4096 * time.Nanosecond << 14

// §4.2: one NAK a gap; §3.15: resend from there, Middle on, no new RETH.
func TestLostMiddle(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem, 1)
	a.post(a.req(1, wr.OpWrite, 0, 4000))
	a.drain()
	a.deliver()
	a.lose(1)
	require.False(t, b.rc.Missing())
	a.deliverAll()
	require.True(t, b.rc.Missing())
	b.want("NAK-seq 1 msn=0")
	b.deliverAll()
	a.want("WRITE_MIDDLE 1 [1024]", "WRITE_MIDDLE 2 [1024]", "WRITE_LAST 3 A [928]")
	a.deliverAll()
	require.False(t, b.rc.Missing())
	b.want("ACK 3 msn=1")
	b.deliverAll()
	a.wantDone("1:success")
	require.Equal(t, a.mem[:4000], b.mem[:4000])
	require.EqualValues(t, 1, b.rc.Stats().SeqNAKsSent)
}

// Reordering inside a receive batch causes no NAK (§4.2).
func TestReorderedBatchNoNAK(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 2048))
	a.drain()
	first, last := a.take(), a.take()
	b.receive(last)
	b.receive(first)
	b.receive(last)
	b.drain()
	b.want("ACK 1 msn=1")
}

// §3.15: a second NAK for the same packet starts no second rewind.
func TestDuplicateNAK(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 3000))
	a.drain()
	a.lose(1)
	a.deliverAll()
	nak := b.take()
	a.receive(nak)
	a.drain()
	a.lose(3)
	a.receive(nak)
	a.drain()
	a.want()
}

// §3.12: retry_cnt n gives n+1 transmissions, then status 12. After a timeout
// one packet goes out with A=1 and is waited for.
func TestTimeoutRetries(t *testing.T) {
	a, _ := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 3000))
	a.post(a.req(2, wr.OpWrite, 0, 1))
	a.drain()
	a.lose(4)
	for range 3 {
		a.advance(timeout14 - 1)
		a.want()
		a.advance(1)
		a.want("WRITE_FIRST 0 A va+0 len=3000 [1024]")
		a.lose(1)
	}
	a.advance(timeout14)
	a.want()
	require.True(t, a.rc.Failed())
	a.wantDone("1:transport retry counter exceeded", "2:work request flushed error")
	require.Zero(t, a.rc.Deadline())
}

func TestTimeoutZeroNeverFires(t *testing.T) {
	a, _ := newPair(t, withSend(func(s *SendConfig) { s.Timeout = 0 }))
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.drain()
	require.Zero(t, a.rc.Deadline())
}

// §4.4: a duplicate WRITE is acknowledged again, not executed again.
func TestLostAck(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem, 1)
	a.post(a.req(1, wr.OpWrite, 0, 64))
	a.drain()
	a.deliverAll()
	b.lose(1)
	clear(b.mem[:64])
	a.advance(timeout14)
	a.want("WRITE_ONLY 0 A va+0 len=64 [64]")
	a.deliverAll()
	b.want("ACK 0 msn=1")
	require.Zero(t, b.mem[5], "not executed again")
	b.deliverAll()
	a.wantDone("1:success")
}

func TestLostAckOfSend(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(7, 0, 64)
	b.postRecv(8, 0, 64)
	a.post(a.req(1, wr.OpSend, 0, 64))
	a.drain()
	a.deliverAll()
	b.lose(1)
	a.advance(timeout14)
	a.deliverAll()
	b.deliverAll()
	a.wantDone("1:success")
	b.wantDone("7:success")
	require.Len(t, b.recvs, 1)
}

// A duplicate in the middle of an unfinished message is acknowledged with the
// newest executed PSN and the MSN so far (§4.4).
func TestDuplicateInsideMessage(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 4000))
	a.drain()
	first := a.take()
	b.receive(first)
	a.deliver()
	a.deliver()
	first[8] |= 0x80 // as a resend asks for an ACK
	b.receive(first)
	b.drain()
	b.want("ACK 2 msn=0")
}

// R2: an ACK of a later WRITE does not complete a READ; the READ is asked for
// again at once, and once.
func TestLostReadRequest(t *testing.T) {
	a, b := newPair(t)
	fill(b.mem[:100], 4)
	a.post(a.req(1, wr.OpRead, 0, 100))
	a.drain()
	a.lose(1)
	// The peer never saw the READ, so a correct one NAKs what follows it.
	a.post(a.req(2, wr.OpWrite, 500, 8))
	a.drain()
	a.deliverAll()
	b.want("NAK-seq 0 msn=0")
	b.deliverAll()
	a.exchange()
	a.wantDone("1:success", "2:success")
	require.Equal(t, b.mem[:100], a.mem[:100])
}

// §3.10: responses lost, the ACK behind them arrives: an implied NAK, once.
func TestLostReadResponse(t *testing.T) {
	a, b := newPair(t)
	fill(b.mem[:4000], 4)
	a.post(a.req(1, wr.OpRead, 0, 4000))
	a.post(a.req(2, wr.OpWrite, 5000, 8))
	a.post(a.req(3, wr.OpWrite, 5008, 8))
	a.drain()
	a.deliverAll()
	b.deliver() // First
	b.lose(1)   // Middle
	require.False(t, a.rc.Missing())
	b.deliver() // Middle: later than expected
	b.deliver() // Last
	b.deliver() // ACK
	require.True(t, a.rc.Missing())
	a.drain()
	a.want("READ_REQ 1 A va+1024 len=2976", "WRITE_ONLY 4 A va+5000 len=8 [8]", "WRITE_ONLY 5 A va+5008 len=8 [8]")
	require.EqualValues(t, 1, a.rc.Stats().ImpliedNAKs)
	clear(b.mem[5000:5008])
	a.deliverAll()
	b.want("READ_RESP_FIRST 1 msn=1 [1024]", "READ_RESP_MIDDLE 2 [1024]", "READ_RESP_LAST 3 msn=1 [928]", "ACK 5 msn=3")
	require.Zero(t, b.mem[5000], "the WRITE is not executed again")
	b.deliverAll()
	require.False(t, a.rc.Missing())
	a.wantDone("1:success", "2:success", "3:success")
	require.Equal(t, b.mem[:4000], a.mem[:4000])
}

// §3.13: the answer to a READ asked for again may go on in the old numbering
// (rxe 6.1).
func TestResumedReadOldNumbering(t *testing.T) {
	a, b := newPair(t)
	fill(b.mem[:4000], 4)
	a.post(a.req(1, wr.OpRead, 0, 4000))
	a.drain()
	a.deliverAll()
	answer := [][]byte{b.take(), b.take(), b.take(), b.take()}
	a.receive(answer[0])
	a.advance(timeout14)
	a.want("READ_REQ 1 A va+1024 len=2976")
	for _, p := range answer[1:] {
		a.receive(p)
	}
	a.wantDone("1:success")
	require.Equal(t, b.mem[:4000], a.mem[:4000])
}

// §3.11: what cannot be an answer is a bad response.
func TestBadReadResponses(t *testing.T) {
	op := func(o byte) func([]byte) []byte {
		return func(p []byte) []byte { p[0] = o; return p }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		status string
	}{
		"Middle first":   {func(p []byte) []byte { return append(append(append([]byte{0x0e}, p[1:12]...), p[16:]...), 0) }, "1:bad response error"},
		"Only for First": {op(0x10), "1:bad response error"},
		"Last first":     {op(0x0f), "1:bad response error"},
		"short First":    {func(p []byte) []byte { return append(p[:16:16], p[20:]...) }, "1:local length error"},
		"long First":     {func(p []byte) []byte { return append(p[:16:16], append([]byte{1, 2, 3, 4}, p[16:]...)...) }, "1:local length error"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			a.post(a.req(1, wr.OpRead, 0, 4000))
			a.drain()
			a.deliverAll()
			p := c.change(b.take())
			if name == "Middle first" {
				p = p[:len(p)-1]
			}
			a.receive(p)
			a.wantDone(c.status)
			require.True(t, a.rc.Failed())
		})
	}
}

// R10: a lost atomic ACK is answered from the saved result; memory changes once.
func TestLostAtomicAck(t *testing.T) {
	a, b := newPair(t)
	r := a.req(1, wr.OpFetchAdd, 0, 8)
	r.SwapAdd = 5
	a.post(r)
	a.drain()
	a.deliverAll()
	b.lose(1)
	a.advance(timeout14)
	a.want("FETCH_ADD 0 A")
	a.deliverAll()
	b.want("ATOMIC_ACK 0 msn=1 orig=0")
	b.deliverAll()
	a.wantDone("1:success")
	require.EqualValues(t, 5, binary.NativeEndian.Uint64(b.mem))
}

// Saved results survive as long as max_dest_rd_atomic newer requests have not
// come (§4.4).
func TestReplaysOfManyAtomics(t *testing.T) {
	a, b := newPair(t)
	for i := range 4 {
		r := a.req(uint64(i), wr.OpFetchAdd, 0, 8)
		r.SwapAdd = 1
		a.post(r)
	}
	a.drain()
	a.deliverAll()
	b.lose(4)
	for range 4 {
		a.advance(timeout14)
		a.exchange()
	}
	a.wantDone("0:success", "1:success", "2:success", "3:success")
	require.EqualValues(t, 4, binary.NativeEndian.Uint64(b.mem))
	require.EqualValues(t, 3, binary.NativeEndian.Uint64(a.mem))
}

// §3.14: an RNR NAK acknowledges what precedes it; nothing is sent before the
// whole time has passed (R5, H1); then from that packet on.
func TestRNR(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpSend, 0, 3000))
	a.post(a.req(3, wr.OpWrite, 0, 8))
	a.drain()
	a.deliverAll()
	b.want("RNR(12) 1 msn=1")
	b.deliverAll()
	a.wantDone("1:success")
	a.want()
	a.advance(640*time.Microsecond - 1)
	a.want()
	b.postRecv(5, 0, 4000)
	a.advance(641*time.Microsecond/16 + 2)
	a.want("SEND_FIRST 1 [1024]", "SEND_MIDDLE 2 [1024]", "SEND_LAST 3 A [952]", "WRITE_ONLY 4 A va+0 len=8 [8]")
	a.exchange()
	a.wantDone("2:success", "3:success")
	b.wantDone("5:success")
}

// §4.7: WRITE with immediate looks for a receive only with its last packet.
func TestRNROnWriteImm(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem, 7)
	a.post(a.req(1, wr.OpWriteImm, 0, 2500))
	a.drain()
	a.deliverAll()
	b.want("RNR(12) 2 msn=0")
	require.Zero(t, b.mem[2400], "the data of the refused packet is not placed")
	b.deliverAll()
	b.postRecv(5, 0, 0)
	a.advance(time.Millisecond)
	a.want("WRITE_LAST_IMM 2 A [452]")
	a.exchange()
	a.wantDone("1:success")
	require.EqualValues(t, 2500, b.done[0].ByteLen)
}

func TestRNRExceeded(t *testing.T) {
	a, b := newPair(t, withSend(func(s *SendConfig) { s.RNRRetry = 2 }))
	a.post(a.req(1, wr.OpSend, 0, 64))
	for i := range 3 {
		a.drain()
		require.Len(t, a.sent, 1, "transmission %d", i)
		a.deliverAll()
		b.deliverAll()
		a.advance(time.Millisecond)
	}
	a.wantDone("1:RNR retry counter exceeded")
}

// R4, A7: rnr_retry 7 is unlimited.
func TestRNRUnlimited(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpSend, 0, 64))
	for range 100 {
		a.drain()
		a.deliverAll()
		b.deliverAll()
		a.advance(time.Millisecond)
	}
	b.postRecv(1, 0, 64)
	a.exchange()
	a.wantDone("1:success")
}

// While an RNR NAK is pending, later packets are dropped without a NAK of their
// own, and a requester ignores one that comes all the same (§3.14, Q11).
func TestNoSeqNAKAfterRNR(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpSend, 0, 8))
	a.post(a.req(2, wr.OpSend, 0, 8))
	a.drain()
	a.deliver()
	b.drain()
	a.deliver()
	b.drain()
	b.want("RNR(12) 0 msn=0")
	rnr := b.take()
	a.receive(rnr)
	nak := append([]byte{}, rnr...)
	nak[12] = 0x60
	a.receive(nak)
	a.drain()
	a.want()
}

// R8: a NAK in the middle of READ responses.
func TestNAKInsideRead(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpRead, 0, 4000))
	a.drain()
	a.deliverAll()
	b.deliver()
	nak := append([]byte{0x11}, b.take()[1:12]...)
	nak = append(nak, 0x62, 0, 0, 0, 0, 0, 0, 0)
	a.receive(nak)
	a.wantDone("1:remote access error")
	require.Equal(t, cq.StatusRemoteAccess, a.rc.Cause().Status)
}

// An old ACK, one beyond what was sent, reserved syndromes and reserved NAK
// codes change nothing (§3.9, §3.11).
func TestIgnoredResponses(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpWrite, 0, 8))
	a.drain()
	a.deliverAll()
	ack := b.take()
	for _, s := range []byte{0x65, 0x7f, 0x40, 0x80, 0xff} {
		p := append([]byte{}, ack...)
		p[12] = s
		a.receive(p)
	}
	beyond := append([]byte{}, ack...)
	beyond[11]++
	a.receive(beyond)
	a.wantDone()
	a.receive(ack)
	a.wantDone("1:success", "2:success")
	a.receive(ack)
	for _, s := range []byte{0x60, 0x61, 0x62, 0x63, 0x2c} { // stale NAKs (§3.9)
		p := append([]byte{}, ack...)
		p[12] = s
		a.receive(p)
	}
	require.False(t, a.rc.Failed())
}

// A zero credit count, as ConnectX sends it, does not throttle (§3.6).
func TestZeroCredits(t *testing.T) {
	a, b := newPair(t)
	for i := range 5 {
		b.postRecv(uint64(i), 0, 64)
		a.post(a.req(uint64(i), wr.OpSend, 0, 8))
	}
	a.drain()
	a.deliver()
	b.drain()
	ack := b.take()
	ack[12] = 0
	a.receive(ack)
	require.Zero(t, a.rc.Stats().CreditsSeen)
	a.exchange()
	a.wantDone("0:success", "1:success", "2:success", "3:success", "4:success")
}

// §7.2.5: with a measured round trip a lost tail is repaired long before the
// configured timeout, and that costs no retry.
func TestEarlyTimeout(t *testing.T) {
	a, b := newPair(t, withSend(func(s *SendConfig) { s.FixedTimeout, s.RetryCount = false, 0 }))
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.drain()
	a.now = a.now.Add(20 * time.Microsecond)
	a.deliverAll()
	b.deliverAll()
	a.wantDone("1:success")
	a.post(a.req(2, wr.OpWrite, 0, 8))
	a.drain()
	a.lose(1)
	a.advance(calmTimeout)
	a.want("WRITE_ONLY 1 A va+0 len=8 [8]")
	require.EqualValues(t, 1, a.rc.Stats().EarlyTimeouts)
	a.lose(1)
	for !a.rc.Failed() {
		require.Positive(t, a.rc.Deadline())
		a.advance(a.rc.Deadline().Sub(a.now))
	}
	require.Equal(t, timeout14, a.now.Sub(1_000_000+20_000).Truncate(time.Microsecond).Round(timeout14))
	a.wantDone("2:transport retry counter exceeded")
}

// §7.2.1: CE marks give CNPs, not faster than one in 50 µs, and CNPs shrink the
// peer's window.
func TestCongestionNotification(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 500_000))
	a.drain()
	full := a.rc.req.win.packets
	b.rc.Congested(b.now)
	b.drain()
	b.rc.Congested(b.now.Add(CNPInterval - 1))
	b.drain()
	b.want("CNP")
	b.deliverAll()
	require.Equal(t, full/2, a.rc.req.win.packets)
	b.rc.Congested(b.now.Add(CNPInterval))
	b.drain()
	b.want("CNP")
}
