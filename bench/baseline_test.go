package bench

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryBaselineIsKnownByItsName(t *testing.T) {
	for _, b := range AllBaselines() {
		got, err := parseBaseline(string(b))
		require.NoError(t, err)
		require.Equal(t, b, got)
		require.Contains(t, BaselineNames(), string(b))
	}
	_, err := parseBaseline("udp")
	require.ErrorContains(t, err, "tcp, shm, memcpy, ucx, ucx-get, iperf3, libfabric, or none alone")
}

// A program that is not installed is left out, and the report names its package.
func TestMissingProgramIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cfg := small(t)
	cfg.Sizes, cfg.Ops, cfg.Rounds, cfg.Duration = []int{64}, []Op{OpWrite}, 1, minSlice
	cfg.Baselines = []Baseline{BaselineTCP, BaselineUCX, BaselineUCXGet, BaselineIperf3, BaselineLibfabric}
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Equal(t, []Missing{
		{BaselineUCX, "not installed: package ucx-utils"},
		{BaselineUCXGet, "not installed: package ucx-utils"},
		{BaselineIperf3, "not installed: package iperf3"},
		{BaselineLibfabric, "not installed: package libfabric-bin"},
	}, r.Missing)
	require.Equal(t, []Baseline{BaselineTCP}, r.Config.Baselines)
	require.Len(t, r.Ratios, 1)
	var b bytes.Buffer
	require.NoError(t, r.WriteTable(&b))
	require.Contains(t, b.String(), "iperf3: not installed: package iperf3.\n")
}

func TestBaselinesThatNeedThisMachine(t *testing.T) {
	for _, b := range AllBaselines() {
		why := Config{Peer: "there"}.absent(b.kind())
		if b == BaselineTCP || b == BaselineMemcpy {
			require.Empty(t, why)
		} else {
			require.Contains(t, why, "needs the peer on this machine")
		}
	}
}

// Results say what their messages walked through: ours and the baselines' the
// same.
func TestResultsSayWhatTheyWalked(t *testing.T) {
	cfg := small(t)
	cfg.Sizes, cfg.Rounds, cfg.Duration, cfg.Region = []int{64, 3000}, 1, minSlice, 100_000
	cfg.Baselines = []Baseline{BaselineTCP, BaselineMemcpy}
	if haveShared {
		cfg.Baselines = append(cfg.Baselines, BaselineShm)
	}
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	want := map[int]int{64: 99_968, 3000: 33 * 3008, 8: 100_000 / 64 / 8 * 64 * 8}
	for _, x := range r.Results {
		if !x.Op.atomic() {
			require.Equal(t, want[x.Size], x.Walks, "%v of %d", x.Op, x.Size)
		} else {
			require.Equal(t, slotAlign, x.Walks)
		}
	}
	for _, x := range r.Baselines {
		if x.Size != atomicSize {
			require.Equal(t, want[x.Size], x.Walks, "%v of %d", x.Name, x.Size)
		}
	}
}
