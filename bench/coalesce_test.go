package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All ways move and verify messages, and the report tells which against which.
func TestRunCoalesce(t *testing.T) {
	r, err := RunCoalesce(t.Context(), Config{
		Duration: 40 * time.Millisecond, Rounds: 2, Seed: 9, Local: netip.MustParseAddr("127.66.9.1"), PeerLocal: netip.MustParseAddr("127.66.9.2"),
	})
	require.NoError(t, err)
	require.Len(t, r.Results, len(coalesceWays))
	for _, x := range r.Results {
		require.Positive(t, x.MsgsPerS, x.Op)
	}
	var out bytes.Buffer
	require.NoError(t, r.WriteJSON(&out))
	var back CoalesceReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, *r, back)
	require.Contains(t, out.String(), `"against": "plain"`)
	out.Reset()
	require.NoError(t, r.WriteTable(&out))
	require.Contains(t, out.String(), "coalesce / plain")
	require.Contains(t, out.String(), "127.66.9.1 -> 127.66.9.2, one process\nmachine: "+Machine()+"\nsize 64, 2 rounds, 40ms a way, seed 9\n")
	for _, q := range r.Ratios {
		require.LessOrEqual(t, q.Min, q.Median)
		require.LessOrEqual(t, q.Median, q.Max)
	}
}

// A reader that is ahead of its counting must not stop the writer: 4,096 reads of
// their own, more than any queue of them had room for.
func TestTCPSinkNeverBlocks(t *testing.T) {
	s, err := newTCPSink(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	b := make([]byte, 64<<10)
	for range 2 {
		for range 4096 {
			_, err = s.conn.Write(b)
			require.NoError(t, err)
		}
		require.NoError(t, s.flush(t.Context(), 4096*uint64(len(b))))
	}
	require.NoError(t, s.close())
	require.ErrorIs(t, s.flush(t.Context(), 1), net.ErrClosed)
}

// Each way ends with its context, long before its time, be the reader as slow as it
// likes.
func TestCoalesceWaysEndWithContext(t *testing.T) {
	m, err := newCoalesceMover(t.Context(), Config{Local: netip.MustParseAddr("127.66.9.3"), PeerLocal: netip.MustParseAddr("127.66.9.4")})
	require.NoError(t, err)
	for _, way := range coalesceWays {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		began := time.Now()
		_, err := m.measure(ctx, way, time.Hour, 0)
		cancel()
		require.Error(t, err, way)
		require.Less(t, time.Since(began), time.Minute, way)
	}
	require.NoError(t, m.close())

	s, err := newTCPSink(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer context.AfterFunc(ctx, s.interrupt)()
	time.AfterFunc(10*time.Millisecond, cancel)
	require.ErrorIs(t, s.flush(ctx, 1), context.Canceled)
	require.ErrorIs(t, func() (err error) { // nobody reads what is not sent yet
		for err == nil {
			_, err = s.conn.Write(make([]byte, 1<<20))
		}
		return err
	}(), os.ErrDeadlineExceeded)
	require.NoError(t, s.close())
}
