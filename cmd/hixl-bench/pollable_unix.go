//go:build unix

package main

import (
	"os"
	"syscall"
)

// pollable returns f, if it is a pipe, so that who reads it parks in the runtime's
// poller. A blocked read of what a parent handed down keeps the processor of its
// goroutine until the runtime's monitor takes it away, some 10 ms later when all was
// quiet; on a single core that is the one which has to answer packets.
//
// Anything else stays as it is: a terminal or a socket may be the standard output as
// well, whose writes would fail when they do not block, and a file is always ready.
func pollable(f *os.File) *os.File {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return f
	}
	fd := f.Fd()
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return f
	}
	return os.NewFile(fd, f.Name())
}
