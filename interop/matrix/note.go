//go:build linux

package matrix

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// What a note holds of the end of things.
const (
	notedPackets = 60
	notedConsole = 8
	noteLimit    = 10 * time.Second
)

// note writes down all that may explain a failed cell and returns the file, empty
// when that failed too.
func (b *Bench) note(ctx context.Context, capture string, failure error) string {
	var t bytes.Buffer
	fmt.Fprintf(&t, "%v\n", failure)
	for _, g := range b.Lab.Guests {
		fmt.Fprintf(&t, "\n%s's console ends:\n%s\n", g.Name, g.Console(notedConsole))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(&t, "\nload of this machine: %s", load)
	}
	fmt.Fprintf(&t, "\n%s ends:\n%s", capture, b.lastPacketsOf(ctx, capture))
	path := strings.TrimSuffix(capture, ".pcap") + ".txt"
	if err := os.WriteFile(path, t.Bytes(), 0o644); err != nil {
		return ""
	}
	return path
}

// lastPacketsOf is the end of what hixl dump shows of a capture.
func (b *Bench) lastPacketsOf(ctx context.Context, capture string) string {
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, b.Hixl, "dump", capture).CombinedOutput()
	lines := strings.SplitAfter(string(out), "\n")
	text := strings.Join(lines[max(0, len(lines)-notedPackets):], "")
	if err != nil {
		text += err.Error() + "\n"
	}
	return text
}
