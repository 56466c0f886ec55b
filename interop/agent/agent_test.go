//go:build unix

package agent

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const wait = 2 * time.Minute

func start(t *testing.T) *Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
	return Dial(l.Addr().String())
}

func TestRun(t *testing.T) {
	tests := []struct{ command, stdout, stderr string }{
		{"echo out; echo err >&2", "out\n", "err\n"},
		{"true", "", ""},
		{"cat", "", ""}, // there is no input
		{"head -c 100000 /dev/zero", strings.Repeat("\x00", 100000), ""},
	}
	c := start(t)
	for _, tt := range tests {
		got, err := c.Run(t.Context(), tt.command)
		require.NoError(t, err)
		require.Equal(t, Result{tt.command, tt.stdout, tt.stderr, 0}, got)
	}
}

func TestFailure(t *testing.T) {
	c := start(t)
	got, err := c.Run(t.Context(), "echo no; exit 7")
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, got.Exit)
	require.ErrorContains(t, err, `"echo no; exit 7": exit status 7: no`)

	got, err = c.Run(t.Context(), "kill -9 $$")
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 137, got.Exit)
}

func TestOutputWhileRunning(t *testing.T) {
	c := start(t)
	p, err := c.Start(t.Context(), "echo one; sleep 100")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Output().Stdout == "one\n" }, wait, time.Millisecond)
	p.Kill()
	_, err = p.Wait()
	require.Error(t, err)
}

// Whoever goes away takes the command along, children included.
func TestKill(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	mark := filepath.Join(t.TempDir(), "pid")
	p, err := c.Start(ctx, "sleep 100 & echo $! >"+mark+"; wait")
	require.NoError(t, err)
	var pid string
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(mark)
		pid = strings.TrimSpace(string(b))
		return pid != ""
	}, wait, time.Millisecond)
	cancel()
	_, err = p.Wait()
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool {
		_, err := c.Run(t.Context(), "kill -0 "+pid+" && ! grep -q '^State:.Z' /proc/"+pid+"/status")
		return err != nil
	}, wait, time.Millisecond)
}

func TestPut(t *testing.T) {
	c := start(t)
	path := filepath.Join(t.TempDir(), "tool")
	script := []byte("#!/bin/sh\necho stored\n")
	require.NoError(t, c.Put(t.Context(), path, 0o755, int64(len(script)), bytes.NewReader(script)))
	got, err := c.Run(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "stored\n", got.Stdout)

	err = c.Put(t.Context(), path+"/below", 0o755, 1, strings.NewReader("x"))
	require.ErrorContains(t, err, "below")
}

func TestNonsense(t *testing.T) {
	tests := []struct{ sent, want string }{
		{"hello\n", "no sense"},
		{"{}\n", "a command or a path"},
		{`{"command":"true","path":"/x"}` + "\n", "a command or a path"},
		{`{"path":"/x","size":-1}` + "\n", "a command or a path"},
		{strings.Repeat("x", maxRequest+8192), "more than"},
	}
	c := start(t)
	for _, tt := range tests {
		conn, err := c.Dial(t.Context())
		require.NoError(t, err)
		_, err = conn.Write([]byte(tt.sent))
		require.NoError(t, err)
		kind, b, err := readFrame(conn)
		require.NoError(t, err)
		require.EqualValues(t, kindError, kind)
		require.Contains(t, string(b), tt.want)
		require.NoError(t, conn.Close())
	}
	_, _, err := readFrame(bytes.NewReader([]byte{kindStdout, 0xff, 0, 0, 0}))
	require.ErrorIs(t, err, ErrProtocol)
}
