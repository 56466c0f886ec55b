//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/bench"
)

// Ctrl-C prints what has been measured, marked as interrupted, and exits as
// shells report it.
func TestInterruptPrintsFinishedCells(t *testing.T) {
	t.Setenv(mainEnv, "1")
	exe, err := os.Executable()
	require.NoError(t, err)
	for wait := 500 * time.Millisecond; ; wait *= 2 { // until one round is over, however slow the machine
		var out, said bytes.Buffer
		c := exec.Command(exe, "--local", "127.98.3.1", "--op", "write", "--size", "64", "--duration", "20s", "--rounds", "1000",
			"--region", "64k", "--baseline", "none", "--json")
		c.Stdout, c.Stderr = &out, &said
		require.NoError(t, c.Start())
		time.Sleep(wait)
		require.NoError(t, c.Process.Signal(os.Interrupt))
		_ = c.Wait() // its status follows
		if wait < time.Minute && out.Len() == 0 {
			continue
		}
		require.Equal(t, exitInterrupted, c.ProcessState.ExitCode(), said.String())
		require.Contains(t, said.String(), "interrupted")
		var rep bench.Report
		require.NoError(t, json.Unmarshal(out.Bytes(), &rep), said.String())
		require.True(t, rep.Interrupted)
		require.Len(t, rep.Results, 1)
		require.Positive(t, rep.Results[0].GBPerS)
		return
	}
}
