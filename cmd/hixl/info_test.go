package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hostinfo"
)

// runInfo runs the command alone, without the root command around it.
func runInfo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := newInfoCommand()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(io.Discard)
	err := c.Execute()
	return out.String(), err
}

func TestInfoText(t *testing.T) {
	out, err := runInfo(t)
	require.NoError(t, err)
	for _, name := range []string{"udp_gso", "receive_buffer|af_xdp", "port_4791_loopback", "cpu_crc", "path MTU 4096", "AF_XDP: no: "} {
		require.Regexp(t, name, out)
	}
}

func TestInfoJSON(t *testing.T) {
	out, err := runInfo(t, "--json")
	require.NoError(t, err)
	var r hostinfo.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.NotEmpty(t, r.Checks)
	require.NotEmpty(t, r.Interfaces)
}

func TestInfoTakesNoArguments(t *testing.T) {
	_, err := runInfo(t, "eth0")
	require.ErrorContains(t, err, `info takes no arguments, and got ["eth0"]`)
}
