package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const recordings = "../../testdata/pcaps/"

// execute runs the command line and returns what it said.
func execute(t *testing.T, stdin []byte, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, bytes.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestDump(t *testing.T) {
	good, err := os.ReadFile(recordings + "rc-read.pcap")
	require.NoError(t, err)
	counts := "packets=6 roce=6 icrc_ok=6 icrc_bad=0 malformed=0\n"

	code, out, errs := execute(t, nil, "dump", recordings+"rc-read.pcap")
	require.Zero(t, code, errs)
	require.True(t, strings.HasSuffix(out, "\n"+counts), out)
	require.Equal(t, 7, strings.Count(out, "\n"))
	require.Empty(t, errs)

	code, piped, _ := execute(t, good, "dump", "-")
	require.Zero(t, code)
	require.Equal(t, out, piped)

	code, out, _ = execute(t, good, "dump", "--json", "-")
	require.Zero(t, code)
	require.True(t, strings.HasSuffix(out, "\n"+`{"packets":6,"roce":6,"icrc_ok":6,"icrc_bad":0,"malformed":0}`+"\n"), out)

	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	code, out, errs = execute(t, bad, "dump", "-")
	require.Equal(t, exitBad, code)
	require.True(t, strings.HasSuffix(out, "packets=6 roce=6 icrc_ok=5 icrc_bad=1 malformed=0\n"), out)
	require.Empty(t, errs, "the output says it")

	code, out, errs = execute(t, good[:len(good)-1], "dump", "-")
	require.Equal(t, exitError, code)
	require.True(t, strings.HasSuffix(out, "packets=5 roce=5 icrc_ok=5 icrc_bad=0 malformed=0\n"), out)
	require.Contains(t, errs, "hixl: dump -: capture is cut off")
}

func TestDumpErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such file":   {[]string{"dump", dir + "/none.pcap"}, "no such file; give a pcap or pcapng file"},
		"a folder":       {[]string{"dump", dir}, "is a directory"},
		"no capture":     {[]string{"dump", "dump.go"}, "not a packet capture"},
		"no argument":    {[]string{"dump"}, "dump takes one capture file"},
		"two arguments":  {[]string{"dump", "a", "b"}, "got 2 arguments"},
		"unknown flag":   {[]string{"dump", "--jsn", "x"}, "unknown flag: --jsn"},
		"unknown verb":   {[]string{"dmup"}, "unknown command"},
		"empty capture":  {[]string{"dump", empty(t)}, "has only 0 bytes"},
		"not our format": {[]string{"dump", recordings + "README.txt"}, "give a pcap or pcapng file"},
	} {
		code, out, errs := execute(t, nil, c.args...)
		require.Equal(t, exitError, code, name)
		require.Empty(t, out, name)
		require.True(t, strings.HasPrefix(errs, "hixl: "), name)
		require.Contains(t, errs, c.want, name)
	}
}

func empty(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "empty.pcap")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	return name
}
