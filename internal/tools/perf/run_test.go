package perf

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// both runs both ends of a test.
func both(t *testing.T, n int, cfg Config) (server, client *toolstest.End[Result]) {
	t.Helper()
	return toolstest.Pair(t, n, toolstest.Patience, func(ctx context.Context, common tools.Common) (*Result, error) {
		common.NoTrains = cfg.NoTrains
		cfg := cfg
		cfg.Common = common
		if cfg.Timeout == 0 {
			cfg.Timeout = 18 // 1 s: a machine may stand still
		}
		return Run(ctx, cfg)
	})
}

var (
	writeBW  = Test{Write, Bandwidth}
	writeLat = Test{Write, Latency}
	readBW   = Test{Read, Bandwidth}
	readLat  = Test{Read, Latency}
	sendBW   = Test{Send, Bandwidth}
	sendLat  = Test{Send, Latency}
	atomBW   = Test{Atomic, Bandwidth}
	atomLat  = Test{Atomic, Latency}
)

// Every test, in both roles, with what makes its loops different. Where data comes
// from a peer of this package it is compared.
func TestLoopback(t *testing.T) {
	const some = 50
	for i, c := range []struct {
		name string
		cfg  Config
		// which ends compare data, server first
		server, client bool
	}{
		{"write_bw", Config{Test: writeBW, Iters: some}, true, false},
		{"write_bw odd", Config{Test: writeBW, Iters: some, Size: 1001, MTU: 256, TxDepth: 7, CQMod: 3}, true, false},
		{"write_bw 1 byte inline", Config{Test: writeBW, Iters: 200, Size: 1, Inline: 64}, true, false},
		{"write_bw -q 4 -b", Config{Test: writeBW, Iters: some, Size: 5000, QPs: 4, Bidirectional: true}, true, true},
		{"write_bw -a", Config{Common: tools.Common{NoTrains: true}, Test: writeBW, Iters: 3, All: true}, true, false},
		{"write_bw -a -b", Config{Test: writeBW, Iters: 2, All: true, Bidirectional: true}, true, true},
		{"write_bw -c UC", Config{Test: writeBW, Iters: some, Size: 3000, Connection: hixl.UC}, true, false},
		{"write_bw -D", Config{Test: writeBW, Duration: 200 * time.Millisecond, Size: 512}, true, false},
		{"write_lat", Config{Test: writeLat, Iters: 300}, true, true},
		{"write_lat -a", Config{Test: writeLat, Iters: 2, All: true}, true, true},
		{"write_lat 1 byte", Config{Test: writeLat, Iters: some, Size: 1}, true, true},
		{"write_lat -c UC", Config{Test: writeLat, Iters: some, Size: 2000, Connection: hixl.UC}, true, true},
		{"write_lat -D", Config{Test: writeLat, Duration: 200 * time.Millisecond}, true, true},
		{"read_bw", Config{Test: readBW, Iters: some}, false, true},
		{"read_bw -q 2 -b small", Config{Test: readBW, Iters: 200, Size: 13, QPs: 2, Bidirectional: true, Outs: 4}, true, true},
		{"read_lat", Config{Test: readLat, Iters: some}, false, true},
		{"read_lat -D", Config{Test: readLat, Duration: 200 * time.Millisecond, Size: 100}, false, true},
		{"send_bw", Config{Test: sendBW, Iters: some}, true, false},
		{"send_bw small -q 3", Config{Test: sendBW, Iters: 700, Size: 65, QPs: 3}, true, false},
		{"send_bw -a", Config{Test: sendBW, Iters: 3, All: true}, true, false},
		{"send_bw -b", Config{Test: sendBW, Iters: some, Size: 4097, Bidirectional: true, RxDepth: 5}, true, true},
		{"send_bw -D", Config{Test: sendBW, Duration: 200 * time.Millisecond, Size: 512}, true, false},
		{"send_bw -D -b", Config{Test: sendBW, Duration: 200 * time.Millisecond, Size: 512, Bidirectional: true}, true, true},
		{"send_bw -c UC", Config{Test: sendBW, Iters: some, Size: 1500, Connection: hixl.UC}, true, false},
		{"send_bw -c UD", Config{Test: sendBW, Iters: some, Connection: hixl.UD}, true, false},
		{"send_bw -c UD -a -b", Config{Test: sendBW, Iters: 8, Connection: hixl.UD, All: true, Bidirectional: true}, true, true},
		{"send_lat", Config{Test: sendLat, Iters: some}, true, true},
		{"send_lat -c UD", Config{Test: sendLat, Iters: some, Size: 1000, Connection: hixl.UD}, true, true},
		{"send_lat -c UC", Config{Test: sendLat, Iters: some, Size: 5000, Connection: hixl.UC}, true, true},
		{"send_lat -D", Config{Test: sendLat, Duration: 200 * time.Millisecond}, true, true},
		{"atomic_bw", Config{Test: atomBW, Iters: 200}, false, false},
		{"atomic_bw -A CMP_AND_SWAP -q 2", Config{Test: atomBW, Iters: 200, Atomic: CmpSwap, QPs: 2}, false, false},
		{"atomic_bw -b -Q 5", Config{Test: atomBW, Iters: 200, Bidirectional: true, CQMod: 5}, false, false},
		{"write_bw -R", Config{Test: writeBW, Iters: some, CM: true}, true, false},
		{"write_lat -R", Config{Test: writeLat, Iters: some, CM: true}, true, true},
		{"read_bw -R -q 2 -b", Config{Test: readBW, Iters: some, CM: true, QPs: 2, Bidirectional: true}, true, true},
		{"read_lat -R -u 15", Config{Test: readLat, Iters: some, CM: true, Timeout: 15}, false, true},
		{"send_bw -R -q 3", Config{Test: sendBW, Iters: some, CM: true, QPs: 3}, true, false},
		{"send_lat -R", Config{Test: sendLat, Iters: some, CM: true}, true, true},
		{"atomic_bw -R", Config{Test: atomBW, Iters: some, CM: true}, false, false},
		{"send_bw -R -c UD", Config{Test: sendBW, Iters: some, CM: true, Connection: hixl.UD}, true, false},
		{"send_bw -R -c UD -q 3 -b", Config{Test: sendBW, Iters: some, CM: true, Connection: hixl.UD, QPs: 3, Bidirectional: true}, true, true},
		{"send_bw -R -c UD -a", Config{Test: sendBW, Iters: 8, CM: true, Connection: hixl.UD, All: true}, true, false},
		{"send_lat -R -c UD", Config{Test: sendLat, Iters: some, CM: true, Connection: hixl.UD, Size: 1000, TrafficClass: 32}, true, true},
		{"atomic_lat", Config{Test: atomLat, Iters: some}, false, false},
		{"atomic_lat -A CMP_AND_SWAP", Config{Test: atomLat, Iters: some, Atomic: CmpSwap}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, cl := both(t, i+1, c.cfg)
			require.NoError(t, s.Err)
			require.NoError(t, cl.Err)
			for c.cfg.Duration > 0 && cl.Res.Messages == 0 { // the machine stood still meanwhile
				c.cfg.Duration *= 4
				require.Less(t, c.cfg.Duration, 2*toolstest.Patience)
				s, cl = both(t, i+1, c.cfg)
				require.NoError(t, s.Err)
				require.NoError(t, cl.Err)
			}
			require.Equal(t, c.server, s.Res.Compared, "server\n"+s.Out.String())
			require.Equal(t, c.client, cl.Res.Compared, "client\n"+cl.Out.String())
			require.NotZero(t, cl.Res.Messages)
			require.NotEmpty(t, lastLine(t, cl.Out.String()))
		})
	}
}

// lastLine returns the last line of the table.
func lastLine(t *testing.T, out string) string {
	t.Helper()
	parts := strings.Split(out, ruler)
	require.Greater(t, len(parts), 2, out)
	lines := strings.Split(strings.TrimSpace(parts[len(parts)-2]), "\n")
	require.Greater(t, len(lines), 1, out)
	return lines[len(lines)-1]
}
