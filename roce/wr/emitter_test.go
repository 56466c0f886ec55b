package wr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// emitter has posted requests 1..n of 8 bytes in memory, and emits them on demand.
type emitter struct {
	t *testing.T
	wr.Emitter
	batch *wr.Batch
}

func newEmitter(t *testing.T, n int) *emitter {
	e := &emitter{t: t, batch: wr.NewBatch(16, 1<<18)}
	e.Init(8, 1)
	for i := range n {
		e.post(uint64(i+1), &wr.Request{Flags: wr.Signaled, Spans: []mr.Span{{Len: 8}}})
	}
	return e
}

func (e *emitter) post(id uint64, r *wr.Request) {
	r.ID = id
	w := e.Push(r)
	w.Length = 8
}

// emit sends the current request and returns the token of its payload.
func (e *emitter) emit() uint64 {
	e.t.Helper()
	require.NotNil(e.t, e.Current())
	o := e.batch.Add(&roce.Packet{}, 8)
	e.Attach(e.batch, o, 0, 8)
	e.Left()
	return o.Token
}

type retired struct {
	id     uint64
	status cq.Status
}

func (e *emitter) retire() (got []retired) {
	for w, s := e.Retire(); w != nil; w, s = e.Retire() {
		got = append(got, retired{w.ID, s})
	}
	return got
}

// Requests complete in order, when they have left and been read.
func TestEmitterOrder(t *testing.T) {
	e := newEmitter(t, 3)
	first, second := e.emit(), e.emit()
	require.NotZero(t, first)
	require.NotEqual(t, first, second)
	require.Empty(t, e.retire())
	require.False(t, e.AllRead())
	require.Equal(t, cq.StatusSuccess, e.Fetched(second, wr.Done))
	require.Empty(t, e.retire(), "the first comes first")
	require.Equal(t, cq.StatusSuccess, e.Fetched(first, wr.Done))
	require.Equal(t, []retired{{1, cq.StatusSuccess}, {2, cq.StatusSuccess}}, e.retire())
	require.True(t, e.AllRead())
	require.Equal(t, uint64(3), e.Current().ID)
	require.Equal(t, cq.StatusSuccess, e.Fetched(first, wr.Failed), "a token of the past means nothing")
	require.Equal(t, 1, e.Len())
}

// What needs no reading completes as it leaves, silently unless it asked.
func TestEmitterInline(t *testing.T) {
	e := newEmitter(t, 0)
	e.post(1, &wr.Request{Inline: []byte("12345678"), Flags: wr.Inline})
	e.post(2, &wr.Request{Inline: []byte("12345678"), Flags: wr.Signaled | wr.Inline})
	require.Zero(t, e.emit())
	require.Empty(t, e.retire())
	require.Equal(t, 1, e.Len(), "done without a word")
	require.Zero(t, e.emit())
	require.Equal(t, "12345678", string(e.batch.At(1).Inline))
	require.Equal(t, []retired{{2, cq.StatusSuccess}}, e.retire())
	require.Nil(t, e.Current())
}

// The request whose payload cannot be read gets the blame, the others what is
// theirs.
func TestEmitterUnreadable(t *testing.T) {
	for outcome, want := range map[wr.Outcome]cq.Status{wr.Revoked: cq.StatusLocalProtection, wr.Failed: cq.StatusLocalQPOperation} {
		e := newEmitter(t, 4)
		first, second, third := e.emit(), e.emit(), e.emit()
		require.Equal(t, want, e.Fetched(second, outcome))
		e.Fail()
		require.Equal(t, cq.StatusSuccess, e.Fetched(third, wr.Failed), "one is enough")
		require.Empty(t, e.retire())
		require.Nil(t, e.Current())
		e.Fetched(first, wr.Done)
		require.Equal(t, []retired{{1, cq.StatusSuccess}, {2, want}, {3, cq.StatusSuccess}, {4, cq.StatusFlushed}}, e.retire())
	}
}

// Without a request to blame, the oldest says what failed; one posted later does
// not.
func TestEmitterBlame(t *testing.T) {
	e := newEmitter(t, 2)
	token := e.emit()
	e.Blame(cq.StatusFatal)
	e.Fail()
	e.Blame(cq.StatusGeneral) // too late
	e.Fetched(token, wr.Done)
	require.Equal(t, []retired{{1, cq.StatusFatal}, {2, cq.StatusFlushed}}, e.retire())

	for _, s := range []cq.Status{cq.StatusSuccess, cq.StatusFlushed} {
		e = newEmitter(t, 1)
		e.Blame(s)
		e.Fail()
		require.Equal(t, []retired{{1, cq.StatusFlushed}}, e.retire())
	}

	e = newEmitter(t, 0)
	e.Blame(cq.StatusFatal)
	e.Fail()
	e.post(1, &wr.Request{Spans: []mr.Span{{Len: 8}}})
	require.Equal(t, []retired{{1, cq.StatusFlushed}}, e.retire())
}
