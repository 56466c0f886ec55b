package bench

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All ways move and verify messages, and the report tells which against which.
func TestRunCoalesce(t *testing.T) {
	r, err := RunCoalesce(t.Context(), Config{
		Duration: 40 * time.Millisecond, Rounds: 2, Local: netip.MustParseAddr("127.66.9.1"), PeerLocal: netip.MustParseAddr("127.66.9.2"),
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
	for _, q := range r.Ratios {
		require.LessOrEqual(t, q.Min, q.Median)
		require.LessOrEqual(t, q.Median, q.Max)
	}
}
