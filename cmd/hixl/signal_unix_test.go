//go:build unix

package main

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tool that is told to end does so by itself, so that its peer is told.
func TestToolsEndOnSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, line := range []string{"rping -s -a 127.94.183.1", "perf write_bw --local 127.94.183.1 --bind 127.94.183.1"} {
			errs := &listener{up: make(chan struct{})}
			ended := make(chan int, 1)
			go func() { ended <- run(words(line), nil, &bytes.Buffer{}, errs) }()
			<-errs.up
			require.NoError(t, syscall.Kill(os.Getpid(), sig))
			require.Equal(t, exitError, <-ended, errs.String())
			require.NotContains(t, errs.String(), "context canceled")
		}
	}
}
