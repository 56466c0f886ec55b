package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/bench"
	"github.com/gohixl/hixl/internal/hosttest"
)

// mainEnv makes this test binary be the program.
const mainEnv = "HIXL_BENCH_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		os.Exit(0)
	}
	hosttest.VerifyTestMain(m)
}

// execute runs the command line and returns what it printed.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := command()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--op", "put"}, `allowed: write, read, send, write-imm, cas, faa`},
		{[]string{"--size", "4q"}, `--size "4q": allowed: 1 to 1GiB`},
		{[]string{"--qps", "0"}, `--qps "0": allowed: 1 to 4096`},
		{[]string{"--depth", "many"}, `--depth "many": allowed: 1 to 8192, or 0`},
		{[]string{"--mtu", "1500"}, `--mtu 1500: allowed: 256, 512, 1024, 2048 or 4096`},
		{[]string{"--baseline", "tcp,none"}, `--baseline "none"`},
		{[]string{"--region", "0"}, `--region "0"`},
		{[]string{"--region", "1k", "--size", "4k"}, "--region 1KiB: allowed: at least 4KiB"},
		{[]string{"--rounds", "0"}, "--rounds 0: allowed: more than 0"},
		{[]string{"--duration", "0s"}, "--duration 0: allowed: more than 0"},
		{[]string{"--loss", "2"}, "--loss 2: allowed: 0 to 0.3"},
		{[]string{"--local", "here"}, `--local "here": allowed: an IP address`},
		{[]string{"--local", "0.0.0.0"}, `--local "0.0.0.0"`},
		{[]string{"--local", "127.0.0.9,127.0.0.9"}, "two different addresses"},
		{[]string{"--json", "--csv"}, "--csv with --json: allowed: one of the two"},
		{[]string{"--peer", "h", "--in-process"}, "allowed: one of the two"},
		{[]string{"--serve", "--peer", "h"}, "--peer with --serve: allowed: --serve with --listen"},
		{[]string{"--serve", "--local", "127.0.0.1,127.0.0.2"}, `--local "127.0.0.1,127.0.0.2" with --serve`},
		{[]string{"--listen", ":1"}, "only with --serve"},
	} {
		t.Run(c.args[0]+" "+c.args[len(c.args)-1], func(t *testing.T) {
			out, err := execute(t, c.args...)
			require.ErrorIs(t, err, bench.ErrFlag)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, out)
		})
	}
}

func TestCommandLinesThatCannotBeRead(t *testing.T) {
	for _, args := range [][]string{{"--nosuch"}, {"--duration", "soon"}, {"--rounds", "x"}, {"write"}} {
		_, err := execute(t, args...)
		require.ErrorIs(t, err, errUsage, args)
	}
}

// What --serve does not use, it refuses.
func TestServeRefusesTheRequestersFlags(t *testing.T) {
	values := map[string]string{
		"op": "read", "size": "64", "qps": "2", "depth": "2", "mtu": "1024", "region": "1MiB", "duration": "1s", "rounds": "2",
		"baseline": "none", "json": "true", "csv": "true", "seed": "7", "loss": "0.1", "reorder": "0.1", "duplicate": "0.1",
		"corrupt": "0.1", "in-process": "true", "pin": "true", "peer": "h", "memory": "host", "netns": "true", "link-mtu": "9000", "no-trains": "true", "shards": "2", "low-latency": "true", "cpuprofile": "cpu.out",
	}
	for f, v := range values {
		_, err := execute(t, "--serve", "--"+f+"="+v)
		require.ErrorIs(t, err, bench.ErrFlag, f)
		require.ErrorContains(t, err, "--"+f+" with --serve")
	}
	help, err := execute(t, "--help")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, | +)--([a-z-]+) `).FindAllStringSubmatch(help, -1) {
		switch m[1] {
		case "serve", "listen", "local", "transport", "xdp-mode", "xdp-spin", "help":
		default:
			require.Contains(t, values, m[1], "a flag that --serve neither uses nor refuses")
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	out, err := execute(t, "--help")
	require.NoError(t, err)
	for _, f := range []string{
		"op", "size", "qps", "depth", "mtu", "region", "duration", "rounds", "baseline", "json", "csv", "seed",
		"loss", "reorder", "duplicate", "corrupt", "local", "in-process", "peer", "serve", "listen", "cpuprofile",
	} {
		require.Contains(t, out, "--"+f)
	}
	require.NotContains(t, out, "(default none)")
	require.Regexp(t, `--listen string .*on all addresses of this machine \(default ":18515"\)`, out)
	require.NotContains(t, out, "standard input and output", "the peer command is hidden")
}

func TestJSONRun(t *testing.T) {
	out, err := execute(t, "--in-process", "--local", "127.98.1.1,127.98.1.2", "--op", "write,cas", "--size", "64,4k",
		"--duration", "20ms", "--rounds", "1", "--region", "64k", "--baseline", "tcp", "--seed", "5", "--json")
	require.NoError(t, err)
	var rep bench.Report
	d := json.NewDecoder(bytes.NewReader([]byte(out)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&rep))
	require.False(t, d.More(), "one object")
	require.Len(t, rep.Results, 3)
	require.EqualValues(t, 5, rep.Config.Seed)
	require.Equal(t, 65536, rep.Config.Region)
	for _, r := range rep.Results {
		require.True(t, r.Verified)
	}
}

func TestTableAndCSVRuns(t *testing.T) {
	args := []string{
		"--in-process", "--local", "127.98.2.1", "--op", "read", "--size", "100", "--duration", "20ms", "--rounds", "1",
		"--region", "64k", "--baseline", "none",
	}
	out, err := execute(t, args...)
	require.NoError(t, err)
	require.Contains(t, out, "127.98.2.1 -> 127.98.2.2")
	require.Regexp(t, `(?m)^read +100 `, out)

	profile := filepath.Join(t.TempDir(), "cpu.out")
	_, err = execute(t, append(args, "--cpuprofile", profile)...)
	require.NoError(t, err)
	b, err := os.ReadFile(profile)
	require.NoError(t, err)
	require.NotEmpty(t, b)

	out, err = execute(t, append(args, "--csv")...)
	require.NoError(t, err)
	require.Regexp(t, `^op,size,qps,`, out)
}
