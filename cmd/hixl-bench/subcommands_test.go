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
	require.Regexp(t, `(?m)^write +4KiB `, out)
	require.Regexp(t, `(?m)^memcpy +64 `, out)
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
