//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// kept are files whose descriptor another file has taken over: they must not close it.
var kept []*os.File

// A pipe that blocks, as a parent hands it down, becomes one whose reads can be ended.
func TestPipeBecomesPollable(t *testing.T) {
	var fds [2]int
	require.NoError(t, syscall.Pipe(fds[:]))
	r, w := os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
	kept = append(kept, r)
	require.ErrorIs(t, r.SetReadDeadline(time.Now()), os.ErrNoDeadline)
	p := pollable(r)
	defer func() { require.NoError(t, p.Close()) }()
	require.NoError(t, p.SetReadDeadline(time.Now()))
	b := make([]byte, 8)
	_, err := p.Read(b)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, p.SetReadDeadline(time.Time{}))
	_, err = w.WriteString("more")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	n, err := p.Read(b)
	require.NoError(t, err)
	require.Equal(t, "more", string(b[:n]))
}

// Files, devices as terminals are, and sockets stay as they are.
func TestOthersStayAsTheyAre(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	files := []*os.File{os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")}
	for _, name := range []string{file, os.DevNull} {
		f, err := os.Open(name)
		require.NoError(t, err)
		files = append(files, f)
	}
	for _, f := range files {
		before, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		require.NoError(t, err)
		require.Same(t, f, pollable(f), f.Name())
		after, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		require.NoError(t, err)
		require.Equal(t, before, after, f.Name())
		require.NoError(t, f.Close())
	}
}
