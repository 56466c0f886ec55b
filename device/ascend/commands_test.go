//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildCommands builds the commands that know this package.
func buildCommands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-tags", "ascend", "-buildvcs=false", "-o", dir+"/", "./cmd/hixl", "./cmd/hixl-bench")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// run runs a command with the simulated libraries.
func (s *sim) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	c := s.config()
	cmd.Env = append(os.Environ(), "HIXL_ASCEND_LIBRARY="+c.Library, "HIXL_ASCEND_DRIVER="+c.Driver)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s%s", name, args, out, stderr.String())
	return string(out)
}

// The commands that are built with -tags ascend load the library and move verified
// bytes between device memories, and between device and host memory, in two
// processes.
func TestCommands(t *testing.T) {
	bin := buildCommands(t)
	s := newSim(t, map[string]string{"BANDWIDTH": "500000000"})
	info := s.run(t, filepath.Join(bin, "hixl"), "info")
	for _, name := range []string{"ascend_runtime", "ascend_mapping", "ascend_copies"} {
		require.Regexp(t, `(?m)^ok +`+name, info)
	}
	for i, memory := range []string{"ascend", "host,ascend", "ascend,host"} {
		out := s.run(t, filepath.Join(bin, "hixl-bench"), "--memory", memory, "--size", "64,64KiB", "--duration", "40ms", "--rounds", "1",
			"--baseline", "none", "--region", "1MiB", "--json", "--local", "127.71.60."+string(rune('1'+2*i))+",127.71.60."+string(rune('2'+2*i)))
		var r struct {
			Config struct {
				Memory string `json:"memory"`
				Peer   string `json:"peer_memory"`
			} `json:"config"`
			Results []struct {
				Op       string `json:"op"`
				Verified bool   `json:"verified"`
			} `json:"results"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Len(t, r.Results, 10, "four operations at two sizes, two atomics")
		for _, x := range r.Results {
			require.True(t, x.Verified, "%s", x.Op)
		}
		here, there, two := strings.Cut(memory, ",")
		if !two {
			there = here
		}
		require.True(t, strings.HasPrefix(r.Config.Memory, here) && strings.HasPrefix(r.Config.Peer, there), "%+v", r.Config)
		require.Contains(t, r.Config.Memory+r.Config.Peer, "AscendSim")
		require.Contains(t, r.Config.Memory+r.Config.Peer, "GB/s in", "the engine's pace is stated")
	}
}
