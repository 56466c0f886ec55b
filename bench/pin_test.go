package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHalves(t *testing.T) {
	for _, c := range []struct {
		cores []int
		want  string
	}{
		{nil, "[]"},
		{[]int{3}, "[]"},
		{[]int{0, 1}, "[0 1]"},
		{[]int{0, 1, 2, 3, 8, 9, 11}, "[0-2 3,8-9]"},
	} {
		require.Equal(t, c.want, fmt.Sprint(halve(c.cores).lists()), c.cores)
	}
	require.Empty(t, pinnedTo(nil))
	require.Equal(t, ", pinned to cores 0 and 1", pinnedTo([]string{"0", "1"}))
	for name, cfg := range map[string]Config{
		"not asked for": {}, "in this process": {Pin: true, InProcess: true}, "elsewhere": {Pin: true, Peer: "far"},
	} {
		require.Nil(t, cfg.place(), name)
	}
}

// placedSteps looks where this process is while it measures.
type placedSteps struct {
	quiet
	cores [][]int
	procs []int
}

func (p *placedSteps) Step(string) {
	p.cores, p.procs = append(p.cores, allowedCores()), append(p.procs, runtime.GOMAXPROCS(0))
}

// TestPinned runs two processes, which the report says are held apart where that
// can be, and this one is free again after it.
func TestPinned(t *testing.T) {
	t.Setenv(childEnv, "peer")
	cfg := small(t)
	cfg.InProcess, cfg.PeerCommand, cfg.Pin = false, []string{os.Args[0]}, true
	cfg.Ops, cfg.Sizes, cfg.Baselines = []Op{OpWrite}, []int{64}, []Baseline{BaselineTCP}
	before, procs := allowedCores(), runtime.GOMAXPROCS(0)
	want := halve(before)
	var seen placedSteps
	r, err := Run(t.Context(), cfg, &seen)
	require.NoError(t, err)
	require.Equal(t, before, allowedCores())
	require.Equal(t, procs, runtime.GOMAXPROCS(0))
	require.Equal(t, want.lists(), r.Config.Pinned)
	require.Len(t, seen.cores, 2*cfg.Rounds)
	for i := range seen.cores {
		if want == nil {
			require.Equal(t, before, seen.cores[i])
			continue
		}
		require.Equal(t, want.here, seen.cores[i])
		require.Equal(t, len(want.here), seen.procs[i])
	}
	var b bytes.Buffer
	require.NoError(t, r.WriteTable(&b))
	require.Contains(t, b.String(), modeProcesses+pinnedTo(want.lists())+"\n")
}

// TestPeerStaysWhereItMay holds a peer to the cores that there are, and to whom it
// listens.
func TestPeerStaysWhereItMay(t *testing.T) {
	require.ErrorContains(t, newPeer(small(t).Local).stayOn([]int{0}), "anybody")
	trusted := newPeer(small(t).Local)
	trusted.trusted = true
	require.NoError(t, trusted.stayOn(nil))
	for _, bad := range [][]int{{-1}, {1 << 20}} {
		require.ErrorContains(t, trusted.stayOn(bad), "allowed: 0 to 1023")
	}
}
