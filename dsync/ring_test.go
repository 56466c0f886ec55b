package dsync_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/dsync"
)

func TestRing(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.73")
	const slots, size, records = 5, 100, 200
	require.NoError(t, dsync.InitRing(mem, 8, slots, size))
	p, err := dsync.OpenRingProducer(ctx, there, 8)
	require.NoError(t, err)
	c, err := dsync.OpenRingConsumer(ctx, self, 8)
	require.NoError(t, err)
	record := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n%(size+1)) }
	failed := make(chan error, 1)
	go func() {
		for n := range records {
			if seq, err := p.Send(ctx, record(n)); err != nil || seq != uint64(n) {
				t.Errorf("record %d as %d: %v", n, seq, err)
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for n := range records {
		data, seq, err := c.Recv(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n, seq)
		require.Equal(t, record(n), data)
	}
	require.NoError(t, <-failed)
	_, err = p.Send(ctx, make([]byte, size+1))
	require.ErrorIs(t, err, dsync.ErrTooLarge)
	require.NoError(t, p.Close())
	require.NoError(t, c.Close())
}

// A full ring holds its producer back, an empty one its consumer; when one end is
// replaced the other is told, and nothing is lost.
func TestRingEndsRestart(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.74")
	require.NoError(t, dsync.InitRing(mem, 0, 4, 8))
	p, err := dsync.OpenRingProducer(ctx, there, 0)
	require.NoError(t, err)
	c, err := dsync.OpenRingConsumer(ctx, self, 0)
	require.NoError(t, err)
	soonOver := func() context.Context {
		over, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		t.Cleanup(cancel)
		return over
	}
	_, _, err = c.Recv(soonOver())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	send := func(s string) {
		t.Helper()
		_, err := p.Send(ctx, []byte(s))
		require.NoError(t, err)
	}
	recv := func(want string) {
		t.Helper()
		data, _, err := c.Recv(ctx)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
	for _, s := range []string{"a", "b", "c", "d"} {
		send(s)
	}
	_, err = p.Send(soonOver(), []byte("too many"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, dsync.ErrUncertain)
	recv("a")
	require.NoError(t, c.Commit(ctx))
	recv("b")

	// Another consumer gets again what was not committed.
	old := c
	c, err = dsync.OpenRingConsumer(ctx, there, 0)
	require.NoError(t, err)
	recv("b")
	recv("c")
	require.NoError(t, c.Commit(ctx))
	require.ErrorIs(t, old.Commit(ctx), dsync.ErrFenced)
	_, _, err = old.Recv(ctx)
	require.ErrorIs(t, err, dsync.ErrFenced)
	send("e")                    // room was known
	for err = nil; err == nil; { // until it looks for room
		if _, err = p.Send(ctx, []byte("f")); err == nil {
			_, _, recvErr := c.Recv(ctx)
			require.NoError(t, recvErr)
		}
	}
	require.ErrorIs(t, err, dsync.ErrRestarted)
	send("g")

	// Another producer goes on behind the one before.
	q, err := dsync.OpenRingProducer(ctx, self, 0)
	require.NoError(t, err)
	_, err = p.Send(ctx, []byte("mine"))
	require.ErrorIs(t, err, dsync.ErrFenced)
	go func() {
		_, err := q.Send(ctx, []byte("h"))
		if err != nil {
			t.Error(err)
		}
	}()
	for {
		data, _, err := c.Recv(ctx)
		if err != nil {
			require.ErrorIs(t, err, dsync.ErrRestarted)
			break
		}
		require.NotEqual(t, "h", string(data))
	}
	recv("h")
	for _, x := range []interface{ Close() error }{p, q, c, old} {
		require.NoError(t, x.Close())
	}
}

func TestRingMistakes(t *testing.T) {
	ctx := soon(t)
	mem, there, _ := pair(t, "127.88.75")
	require.ErrorIs(t, dsync.InitRing(mem, 0, 0, 8), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitRing(mem, 0, 1<<62, 8), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitRing(mem, 0, 1, 1<<62), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitRing(mem, 0, 1000, 8), dsync.ErrLayout)
	require.NoError(t, dsync.InitRing(mem, 0, 2, 8))
	p, err := dsync.OpenRingProducer(ctx, there, 0)
	require.NoError(t, err)
	_, err = dsync.OpenRingProducer(ctx, there, 4000)
	require.ErrorIs(t, err, dsync.ErrLayout)
	c, err := dsync.OpenRingConsumer(ctx, there, 0)
	require.NoError(t, err)
	_, err = p.Send(ctx, []byte("whole"))
	require.NoError(t, err)
	mem.Bytes()[64+16]++ // somebody writes where nobody should
	_, _, err = c.Recv(ctx)
	require.ErrorIs(t, err, dsync.ErrLayout)
	mem.Bytes()[24]-- // and takes the record back
	_, _, err = c.Recv(ctx)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.NoError(t, p.Close())
	require.NoError(t, c.Close())
}
