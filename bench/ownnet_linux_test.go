package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() { children["program"] = foreignProgram }

// foreignProgram is what this test binary is as a foreign program: a server or
// a client whose first argument says what it does. It leaves its process id in the
// folder that the second names.
func foreignProgram() {
	role, dir := os.Args[1], os.Args[2]
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, role), []byte(pid), 0o600); err != nil {
		panic(err)
	}
	const at = "127.0.0.1:" + programPort
	switch role {
	case "die":
		fmt.Fprintln(os.Stderr, "no", "transport")
		os.Exit(4)
	case "serve", "stay":
		ln, err := net.Listen("tcp", at)
		if err != nil {
			panic(err)
		}
		c, err := ln.Accept()
		if err != nil {
			panic(err)
		}
		_, _ = c.Write([]byte("served\n"))
		_ = c.Close()
		if role == "stay" {
			hang()
		}
	case "ask":
		c, err := net.Dial("tcp", at)
		if err != nil {
			panic(err)
		}
		b := make([]byte, 100)
		n, _ := c.Read(b)
		fmt.Printf("%s", b[:n])
	case "hang":
		hang()
	}
}

// needOwnNet skips without root, which a namespace needs.
func needOwnNet(t *testing.T) *ownNet {
	t.Helper()
	if why := canIsolate(); why != "" {
		t.Skip("a network namespace " + why)
	}
	n, err := openOwnNet(nil)
	require.NoError(t, err)
	t.Cleanup(n.close)
	return n
}

// runForeign runs this binary as server and client and checks that both are gone. The
// run is given up, for a reason, as soon as one hangs.
func runForeign(t *testing.T, n *ownNet, server, client string, why error) (string, error) {
	t.Helper()
	exe := childCommand(t, "program")[0]
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if b, _ := os.ReadFile(filepath.Join(dir, "hang")); len(b) > 0 {
				cancel(why)
			}
			time.Sleep(time.Millisecond)
		}
	})
	defer watch.Wait()
	defer cancel(nil)
	out, _, err := n.run(ctx, os.Environ(), exe, []string{server, dir}, []string{client, dir})
	files, e := os.ReadDir(dir)
	require.NoError(t, e)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, e := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, e)
		pid, e := strconv.Atoi(string(b))
		require.NoError(t, e)
		require.ErrorIs(t, unix.Kill(pid, 0), unix.ESRCH, "%s is still there", f.Name())
	}
	return string(out), err
}

func TestForeignProgramsRunAndAreGone(t *testing.T) {
	n := needOwnNet(t)
	for _, server := range []string{"serve", "stay"} {
		out, err := runForeign(t, n, server, "ask", nil)
		require.NoError(t, err)
		require.Equal(t, "served\n", out)
	}
}

func TestForeignProgramsThatFailAreGone(t *testing.T) {
	n := needOwnNet(t)
	_, err := runForeign(t, n, "die", "ask", nil)
	require.ErrorIs(t, err, errServerGone)
	require.ErrorContains(t, err, "its last words: no transport")

	_, err = runForeign(t, n, "serve", "die", nil)
	require.ErrorContains(t, err, "exit status 4; its last words: no transport")

	why := errors.New("enough")
	for _, c := range []struct{ server, client string }{{"hang", "ask"}, {"serve", "hang"}, {"stay", "hang"}} {
		_, err = runForeign(t, n, c.server, c.client, why)
		require.ErrorIs(t, err, why, c)
	}
	_, _, err = n.run(t.Context(), nil, "/nonexistent", nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The namespace has loopback alone, and this process stays where it was.
func TestOwnNetHasLoopbackAlone(t *testing.T) {
	n := needOwnNet(t)
	require.NotEmpty(t, n.congestion)
	require.NoError(t, n.inside(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(b), "\n"), "two lines of heading and lo: %s", b)
		return nil
	}))
	here, err := os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	var there string
	require.NoError(t, n.inside(func() (err error) {
		there, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}))
	require.NotEqual(t, here, there)
}

// A program that fails leaves its baseline out; the run goes on.
func TestFailingProgramDoesNotFailTheRun(t *testing.T) {
	needOwnNet(t)
	exe := childCommand(t, "leave")[0]
	dir := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(dir, ucxPut.file)))
	t.Setenv("PATH", dir)
	cfg := small(t)
	cfg.Sizes, cfg.Ops, cfg.Duration, cfg.Baselines = []int{64}, []Op{OpWrite}, minSlice, []Baseline{BaselineUCX, BaselineTCP}
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Len(t, r.Results, 1)
	require.Len(t, r.Baselines, 1)
	require.Len(t, r.Missing, 1)
	require.Contains(t, r.Missing[0].Why, "the server ended before it listened")
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:3419 00000000:0000 0A 00000000:00000000
   1: 0100007F:3420 0100007F:AAAA 01 00000000:00000000
`
	require.True(t, listens(table, 0x3419))
	require.False(t, listens(table, 0x3420), "connected")
	require.False(t, listens(table, 0x341))
	require.False(t, listens("", 1))
}
