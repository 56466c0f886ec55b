package rc

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// The tests here repeat faults that other stacks have had (docs/bugs.md), as far
// as no other test does.

// ackFor is an ACK of the packet psn of the requests that e sends.
func (e *end) ackFor(psn int, msn uint32) []byte { return e.answerFor(psn, roce.SynACK, msn) }

// answerFor is a packet with any syndrome for it.
func (e *end) answerFor(psn int, s roce.Syndrome, msn uint32) []byte {
	p := roce.Packet{
		Opcode: roce.OpAcknowledge, PKey: 0xFFFF, DestQP: e.cfg.LocalQPN, PSN: e.seqBase.Add(psn),
		AETH: roce.AETH{Syndrome: s, MSN: msn},
	}
	return p.Append(nil)
}

// R2: the READ between two WRITEs is lost and the second WRITE acknowledged
// nevertheless. The READ does not complete by that; it is asked for again, and its
// answer may begin with First or be one Only.
func TestAckPastRead(t *testing.T) {
	for _, n := range []int{100, 3000} {
		a, b := newPair(t)
		fill(b.mem[:n], 4)
		a.post(a.req(1, wr.OpWrite, 5000, 8))
		a.post(a.req(2, wr.OpRead, 0, n))
		a.post(a.req(3, wr.OpWrite, 5008, 8))
		a.drain()
		a.deliver() // the first WRITE
		a.lose(2)
		last := 1 + (n+1023)/1024
		a.receive(a.ackFor(last, 2))
		a.drain()
		a.wantDone("1:success")
		a.want(fmt.Sprintf("READ_REQ 1 A va+0 len=%d", n), fmt.Sprintf("WRITE_ONLY %d A va+5008 len=8 [8]", last))
		a.exchange()
		a.wantDone("2:success", "3:success")
		require.Equal(t, b.mem[:n], a.mem[:n])
	}
}

// R3: many READs are in flight and the answer to the first is lost. The answers
// behind it arrive out of order, each of them; only the first leads to a resend.
func TestOneRetryForManyOutOfOrderResponses(t *testing.T) {
	a, b := newPair(t, func(a, b *Config) { a.Send.MaxRead, b.MaxDestRead = 16, 16 })
	fill(b.mem[:16000], 4)
	for i := range 16 {
		a.post(a.req(uint64(i), wr.OpRead, 1000*i, 1000))
	}
	a.drain()
	a.deliverAll()
	b.lose(1)
	for len(b.sent) > 0 {
		b.deliver()
		a.drain()
	}
	require.Len(t, a.sent, 16, "each READ is asked for once more, and not fifteen times")
	require.EqualValues(t, 1, a.rc.Stats().ImpliedNAKs)
	require.EqualValues(t, 16, a.rc.Stats().Retransmitted)
	a.exchange()
	require.Len(t, a.done, 16)
	require.Equal(t, b.mem[:16000], a.mem[:16000])
}

// R6: the MSN counts every completed message: plain WRITEs, of several packets
// too, as well as SENDs, READs and atomics, once each, duplicates never.
func TestMSNSequence(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(50, 0, 4000)
	b.postRecv(51, 0, 4000)
	for i, op := range []wr.Op{wr.OpWrite, wr.OpSend, wr.OpRead, wr.OpFetchAdd, wr.OpWriteImm, wr.OpAtomicWrite} {
		n := 3000
		if op.Atomic() {
			n = 8
		}
		a.post(a.req(uint64(i), op, 8000, n))
		a.drain()
		again := append([][]byte{}, a.sent...)
		a.deliverAll()
		msn := uint32(i + 1)
		require.Equal(t, msn, b.lastMSN(), "after %v", op)
		for _, p := range again {
			b.receive(p)
		}
		b.drain()
		require.Equal(t, msn, b.lastMSN(), "after a duplicate of %v", op)
		b.deliverAll()
	}
	a.wantDone("0:success", "1:success", "2:success", "3:success", "4:success", "5:success")
}

// lastMSN is the MSN of the newest packet sent.
func (e *end) lastMSN() uint32 {
	var p roce.Packet
	require.NotEmpty(e.t, e.sent)
	require.NoError(e.t, p.Decode(e.sent[len(e.sent)-1]))
	return p.AETH.MSN
}

// R17: a READ is asked for once more while a message is under way: its region is
// found again, a READ of nothing needs none, and the message goes on.
func TestDuplicateReadMidStream(t *testing.T) {
	for _, n := range []int{0, 2000} {
		a, b := newPair(t)
		fill(a.mem[5000:9000], 1)
		fill(b.mem[:n], 4)
		a.post(a.req(1, wr.OpRead, 0, n))
		a.post(a.req(2, wr.OpWrite, 5000, 4000))
		a.drain()
		read := a.sent[0]
		a.deliver()
		b.drain()
		answer := append([][]byte{}, b.sent...)
		b.deliverAll()
		a.deliver()
		a.deliver() // two packets of the WRITE
		b.receive(read)
		b.drain()
		require.Equal(t, answer, b.sent)
		b.sent = nil
		a.exchange()
		a.wantDone("1:success", "2:success")
		require.Equal(t, a.mem[5000:9000], b.mem[5000:9000])
		require.EqualValues(t, 1, b.rc.Stats().ReadsReplayed)
	}
}

// H9: a READ response acknowledges earlier requests, but some peers do not take
// it for a duplicate's: that gets an ACK of its own.
func TestDuplicateIsAcknowledgedApart(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpRead, 0, 8))
	a.drain()
	packets := append([][]byte{}, a.sent...)
	a.deliverAll()
	b.want("READ_RESP_ONLY 1 msn=2 [8]")
	b.sent = nil
	for _, p := range packets {
		b.receive(p)
	}
	b.drain()
	b.want("READ_RESP_ONLY 1 msn=2 [8]", "ACK 1 msn=2")
}

// A13: a READ response longer than what was asked for is refused before a byte is
// copied.
func TestOversizedReadResponse(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpRead, 0, 100))
	a.drain()
	a.deliverAll()
	var p roce.Packet
	require.NoError(t, p.Decode(b.take()))
	long := make([]byte, 1024)
	fill(long, 9)
	p.SetPayload(long)
	a.receive(p.Append(nil))
	a.wantDone("1:local length error")
	require.Equal(t, make([]byte, 1024), a.mem[:1024])
}

// A request that failed tells how much of it the peer has acknowledged, or of a READ
// is in memory.
func TestArrivedOfFailed(t *testing.T) {
	for _, op := range []wr.Op{wr.OpWrite, wr.OpRead} {
		a, b := newPair(t)
		a.post(a.req(1, op, 0, 4000))
		a.post(a.req(2, op, 0, 4000))
		a.drain()
		from, to := a, b
		if op == wr.OpRead {
			a.deliverAll()
			from, to = b, a
		}
		from.deliver()
		from.deliver()
		from.lose(1)
		from.deliverAll()
		to.deliverAll() // the NAK of a WRITE
		a.rc.Fail(cq.StatusRetryExceeded)
		done := a.rc.Completions()
		require.Len(t, done, 2)
		require.EqualValues(t, 2048, done[0].ByteLen, "%v", op)
		require.Zero(t, done[1].ByteLen)
	}
}

// Nothing of an answer that is discarded gets into memory, and the connection goes
// on.
func TestDiscard(t *testing.T) {
	a, b := newPair(t)
	fill(b.mem, 1)
	fill(a.mem, 7)
	before := append([]byte(nil), a.mem...)
	r := a.req(1, wr.OpRead, 0, 4000)
	a.post(r)
	a.drain()
	a.deliverAll()
	b.deliver()
	require.Equal(t, b.mem[:1024], a.mem[:1024])
	require.True(t, a.rc.Discard(1))
	b.deliverAll()
	require.Equal(t, before[1024:4000], a.mem[1024:4000])
	a.wantDone("1:success")
	a.post(a.req(2, wr.OpRead, 0, 4000))
	a.exchange()
	a.wantDone("2:success")
	require.Equal(t, b.mem[:4000], a.mem[:4000])
}
