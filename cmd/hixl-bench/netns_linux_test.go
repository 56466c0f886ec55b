package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/bench"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// Two namespaces, a link between them, and every combination of carrier and mode:
// all bytes are verified, and the report says what carried them.
func TestNetns(t *testing.T) {
	p, err := veth.New(veth.Config{})
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs root: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, p.Close())
	t.Setenv(mainEnv, "1")
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, args := range [][]string{
		{"--transport", "udp"},
		{"--transport", "xdp", "--xdp-mode", "native", "--xdp-spin", "20us"},
		{"--transport", "xdp", "--xdp-mode", "generic", "--link-mtu", "9000", "--no-trains"},
	} {
		var out, said bytes.Buffer
		cmd := exec.Command(exe, append(args, "--netns", "--op", "write,read,faa", "--size", "64,64KiB",
			"--duration", "20ms", "--rounds", "1", "--baseline", "tcp", "--json")...)
		cmd.Stdout, cmd.Stderr = &out, &said
		require.NoError(t, cmd.Run(), "%v: %s", args, said.String())
		var rep bench.Report
		require.NoError(t, json.Unmarshal(out.Bytes(), &rep))
		require.Equal(t, args[1], rep.Config.Transport)
		require.Len(t, rep.Results, 5)
		require.NotEmpty(t, rep.Baselines)
		for _, r := range rep.Results {
			require.True(t, r.Verified, "%v: %v", args, r.Op)
		}
	}
}
