package rc

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/wr"
)

// finish carries out queued work i.
func (e *end) finish(i int, o wr.Outcome) {
	e.t.Helper()
	w := e.works[i]
	e.works = append(e.works[:i:i], e.works[i+1:]...)
	e.do(w, o)
}

// No ACK covers bytes that are not in memory; commits may come in any order.
func TestAckWaitsForCommit(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	for i := range 3 {
		a.post(a.req(uint64(i), wr.OpWrite, 8*i, 8))
	}
	a.drain()
	a.deliverAll()
	b.want()
	b.finish(2, wr.Done)
	b.drain()
	b.want()
	b.finish(0, wr.Done)
	b.drain()
	b.want("ACK 0 msn=1")
	b.lose(1)
	b.finish(0, wr.Done)
	b.drain()
	b.want("ACK 2 msn=3")
	b.deliverAll()
	a.wantDone("0:success", "1:success", "2:success")
	require.True(t, b.rc.Idle())
}

// Immediate, receive completion, READ and atomic results wait for what precedes
// them.
func TestEffectsWaitInOrder(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	b.postRecv(50, 0, 100)
	b.postRecv(51, 0, 100)
	a.post(a.req(1, wr.OpSend, 0, 8))
	a.post(a.req(2, wr.OpWriteImm, 8, 0))
	a.post(a.req(3, wr.OpRead, 0, 100))
	a.post(a.req(4, wr.OpFetchAdd, 64, 8))
	a.drain()
	a.deliverAll()
	require.Len(t, b.works, 2)
	b.finish(1, wr.Done) // the atomic
	b.drain()
	b.want()
	b.wantDone()
	b.finish(0, wr.Done)
	b.drain()
	b.want("READ_RESP_ONLY 2 msn=3 [100]", "ATOMIC_ACK 3 msn=4 orig=0")
	b.wantDone("50:success", "51:success")
}

// An answer spares the ACK of what precedes it, not of what comes after it.
func TestAnswerBeforeLaterCommit(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	a.post(a.req(1, wr.OpFetchAdd, 0, 8))
	a.post(a.req(2, wr.OpWrite, 8, 8))
	a.drain()
	a.deliverAll()
	b.finish(0, wr.Done)
	b.drain()
	b.want("ATOMIC_ACK 0 msn=1 orig=0")
	b.lose(1)
	b.finish(0, wr.Done)
	b.drain()
	b.want("ACK 1 msn=2")
}

// A NAK acknowledges what precedes it, so it waits too.
func TestNAKWaitsForCommit(t *testing.T) {
	for _, op := range []wr.Op{wr.OpSend, wr.OpWrite} {
		a, b := newPair(t)
		b.lazy = true
		a.post(a.req(1, wr.OpWrite, 0, 8))
		r := a.req(2, op, 8, 8)
		r.RKey ^= 0x100
		a.post(r)
		a.drain()
		a.deliverAll()
		b.want()
		b.finish(0, wr.Done)
		b.drain()
		if op == wr.OpSend {
			b.want("RNR(12) 1 msn=1")
		} else {
			b.want("NAK-access 1 msn=1")
		}
	}
}

func TestSeqNAKWaitsForCommit(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	for i := range 3 {
		a.post(a.req(uint64(i), wr.OpWrite, 8*i, 8))
	}
	a.drain()
	a.deliver()
	a.lose(1)
	a.deliverAll()
	b.want()
	b.finish(0, wr.Done)
	b.drain()
	b.want("NAK-seq 1 msn=1")
}

// Duplicates of packets that are still on their way into memory are not
// acknowledged before they arrive.
func TestDuplicateOfUncommitted(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpWrite, 8, 8))
	a.drain()
	second := a.sent[1]
	a.deliverAll()
	b.receive(second)
	b.finish(0, wr.Done)
	b.drain()
	b.want("ACK 0 msn=1")
	b.finish(0, wr.Done)
	b.drain()
	b.want("ACK 0 msn=1", "ACK 1 msn=2")
}

// A duplicate of an atomic that has not been executed yet must not get an
// answer, nor be executed twice.
func TestDuplicateOfUncommittedAtomic(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	r := a.req(1, wr.OpFetchAdd, 0, 8)
	r.SwapAdd = 3
	a.post(r)
	a.drain()
	p := a.sent[0]
	a.deliverAll()
	b.receive(p)
	b.drain()
	b.want()
	b.finish(0, wr.Done)
	b.drain()
	b.want("ATOMIC_ACK 0 msn=1 orig=0")
	require.EqualValues(t, 3, binary.NativeEndian.Uint64(b.mem))
}

// A READ completes when its data is in memory, and holds up what follows.
func TestReadCompletesWhenPlaced(t *testing.T) {
	a, b := newPair(t)
	a.lazy = true
	a.post(a.req(1, wr.OpRead, 0, 3000))
	a.post(a.req(2, wr.OpWrite, 5000, 8))
	a.drain()
	a.deliverAll()
	b.deliverAll()
	a.wantDone()
	a.finish(2, wr.Done)
	a.finish(0, wr.Done)
	a.wantDone()
	a.finish(0, wr.Done)
	a.wantDone("1:success", "2:success")
}

// After a flush completion no byte may land: requests whose data is on its way
// complete only when it has arrived (§3.17; design: cancel tells the truth).
func TestFlushWaitsForPlacements(t *testing.T) {
	a, b := newPair(t)
	a.lazy = true
	a.post(a.req(1, wr.OpRead, 0, 2000))
	a.post(a.req(2, wr.OpWrite, 5000, 8))
	a.drain()
	a.deliverAll()
	b.deliver()
	a.rc.Fail(0)
	a.wantDone()
	require.False(t, a.rc.Idle())
	a.finish(0, wr.Done)
	a.wantDone("1:work request flushed error", "2:work request flushed error")
	require.True(t, a.rc.Idle())
}

func TestReceiveFlushWaitsForPlacements(t *testing.T) {
	a, b := newPair(t)
	b.lazy = true
	b.postRecv(7, 0, 4000)
	a.post(a.req(1, wr.OpSend, 0, 3000))
	a.drain()
	a.deliver()
	b.rc.Fail(0)
	b.wantDone()
	b.finish(0, wr.Done)
	b.wantDone("7:work request flushed error")
}

// Memory that fails, or a region that was revoked, becomes the NAK of §4.3.7.
func TestPlacementFails(t *testing.T) {
	for _, c := range []struct {
		op    wr.Op
		o     wr.Outcome
		wire  string
		local []string
	}{
		{wr.OpWrite, wr.Failed, "NAK-op 1 msn=1", nil},
		{wr.OpWrite, wr.Revoked, "NAK-access 1 msn=1", nil},
		{wr.OpFetchAdd, wr.Revoked, "NAK-access 1 msn=1", nil},
		{wr.OpSend, wr.Revoked, "NAK-op 1 msn=1", []string{"7:local protection error"}},
		{wr.OpSend, wr.Failed, "NAK-op 1 msn=1", []string{"7:local protection error"}},
	} {
		a, b := newPair(t)
		b.postRecv(7, 0, 64)
		b.lazy = true
		for i, op := range []wr.Op{wr.OpWrite, c.op, wr.OpWrite} {
			a.post(a.req(uint64(i), op, 8*i, 8))
		}
		a.drain()
		a.deliverAll()
		b.finish(0, wr.Done)
		b.finish(1, wr.Done)
		b.finish(0, c.o)
		b.drain()
		b.want(c.wire)
		b.wantDone(c.local...)
		require.True(t, b.rc.Failed())
		require.True(t, b.rc.Idle())
	}
}

// READ data that cannot be placed is a local error of that READ.
func TestReadPlacementFails(t *testing.T) {
	a, b := newPair(t)
	a.lazy = true
	a.post(a.req(1, wr.OpRead, 0, 8))
	a.post(a.req(2, wr.OpWrite, 8, 8))
	a.drain()
	a.deliverAll()
	b.deliverAll()
	a.finish(0, wr.Revoked)
	a.wantDone("1:local protection error", "2:success")
}

// A payload that cannot be fetched fails its request.
func TestFetchFails(t *testing.T) {
	a, _ := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpWrite, 8, 8))
	a.rc.Drain(a.now, a.batch)
	a.rc.Fetched(a.now, a.batch.At(0).Token, wr.Revoked, false)
	a.wantDone("1:local protection error", "2:work request flushed error")
}

// A READ response that cannot be fetched is answered by a NAK in its place
// (§4.8), which a requester takes in the middle of a READ (R8).
func TestReadFetchFails(t *testing.T) {
	for o, wire := range map[wr.Outcome]string{wr.Revoked: "NAK-access 1 msn=1", wr.Failed: "NAK-op 1 msn=1"} {
		a, b := newPair(t)
		a.post(a.req(1, wr.OpRead, 0, 4000))
		a.drain()
		b.receive(a.take())
		b.rc.Drain(b.now, b.batch)
		require.Equal(t, 4, b.batch.Len())
		b.send(b.batch.At(0))
		b.rc.Fetched(b.now, b.batch.At(1).Token, o, false)
		b.batch.Reset()
		b.drain()
		b.want("READ_RESP_FIRST 0 msn=1 [1024]", wire)
		b.deliverAll()
		require.True(t, a.rc.Failed())
	}
}

// While a packet waits for its payload the timer stands still.
func TestTimerWaitsForFetch(t *testing.T) {
	a, _ := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.rc.Drain(a.now, a.batch)
	token := a.batch.At(0).Token
	a.rc.Hold(token)
	require.Zero(t, a.rc.Deadline())
	a.now = a.now.Add(time.Hour)
	a.rc.Expire(a.now)
	require.False(t, a.rc.Failed())
	require.False(t, a.rc.Idle())
	a.rc.Fetched(a.now, token, wr.Done, true)
	require.Equal(t, a.now.Add(timeout14), a.rc.Deadline())
	a.batch.Reset()
	a.advance(timeout14)
	a.want("WRITE_ONLY 0 A va+0 len=8 [8]")
}

// A peer cannot make the responder remember more than its bound (state per peer
// is bounded).
func TestPendingIsBounded(t *testing.T) {
	a, b := newPair(t, withResponder(func(c *Config) { c.MaxPending = 8 }))
	b.lazy = true
	for i := range 20 {
		a.post(a.req(uint64(i), wr.OpWrite, 8*i, 8))
	}
	a.drain()
	a.deliverAll()
	require.Len(t, b.works, 8)
	require.EqualValues(t, 1, b.rc.Stats().DroppedBusy)
	b.lazy = false
	for len(b.works) > 0 {
		b.finish(0, wr.Done)
	}
	a.exchange()
	for range 3 {
		a.advance(timeout14)
		a.exchange()
	}
	require.Len(t, a.done, 20)
}
