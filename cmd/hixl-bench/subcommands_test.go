package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/bench"
)

func TestCompareWritesTableJSONAndPlot(t *testing.T) {
	dir := t.TempDir()
	j, plot := filepath.Join(dir, "c.json"), filepath.Join(dir, "c.html")
	args := []string{
		"compare", "--in-process", "--local", "127.98.4.1", "--size", "64,4k", "--duration", "20ms", "--rounds", "1",
		"--region", "64k", "--baseline", "tcp,memcpy", "--json-file", j, "--plot", plot,
	}
	out, err := execute(t, args...)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^ours +theirs +64 +4KiB$`, out)
	require.Regexp(t, `(?m)^read +memcpy +[0-9.]+ +[0-9.]+$`, out)
	require.Regexp(t, `(?m)^hixl write +[0-9.]+ +[0-9.]+$`, out)
	b, err := os.ReadFile(j)
	require.NoError(t, err)
	var rep bench.Report
	require.NoError(t, json.Unmarshal(b, &rep))
	require.Len(t, rep.Results, 4)
	require.Len(t, rep.Ratios, 8)
	page, err := os.ReadFile(plot)
	require.NoError(t, err)
	require.Contains(t, string(page), "hixl read</text>")

	_, err = execute(t, append(args, "--plot", filepath.Join(dir, "no", "where"))...)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = execute(t, "compare", "write")
	require.ErrorIs(t, err, errUsage)
}

func TestFloors(t *testing.T) {
	out, err := execute(t, "floors", "--list")
	require.NoError(t, err)
	require.Contains(t, out, "write-16m ")
	require.Contains(t, out, "idle-1000 ")

	out, err = execute(t, "floors", "write-1m", "--in-process", "--local", "127.98.5.1", "--duration", "20ms", "--rounds", "1", "--json")
	require.NoError(t, err)
	var r bench.GoalsReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Goals, 1)
	require.Positive(t, r.Goals[0].Median)

	_, err = execute(t, "floors", "nosuch")
	require.ErrorIs(t, err, bench.ErrFlag)
	_, err = execute(t, "floors", "--rounds", "-1")
	require.ErrorIs(t, err, bench.ErrFlag)
	_, err = execute(t, "floors", "--json", "--markdown")
	require.Error(t, err)
}

// Where results cannot be written to, nothing is measured before that is said.
func TestPlacesOfResultsAreLookedAtFirst(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "no", "where")
	for _, flag := range []string{"--json-file", "--plot", "--into"} {
		out, err := execute(t, "compare", "--duration", "1h", flag, nowhere)
		require.ErrorIs(t, err, os.ErrNotExist, flag)
		require.Empty(t, out)
	}
	doc := filepath.Join(dir, "d.md")
	require.NoError(t, os.WriteFile(doc, []byte("nothing\n"), 0o600))
	_, err := execute(t, "floors", "--duration", "1h", "--into", doc)
	require.ErrorContains(t, err, `no section "floors"`)
	_, err = execute(t, "floors", "write-1m", "--duration", "1h", "--into", doc)
	require.ErrorIs(t, err, bench.ErrFlag, "a part of the goals is not the section")
}
