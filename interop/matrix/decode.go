//go:build linux

package matrix

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gohixl/hixl/interop/tshark"
)

// tsharkBatch is how many packets one tshark sees: it keeps something of each.
const tsharkBatch = 100000

// Counts is the last line of hixl dump.
type Counts struct{ Packets, RoCE, Right, Wrong, Malformed int }

// String is the counts in words.
func (c Counts) String() string {
	return fmt.Sprintf("%d RoCE packets, %d with a right ICRC, %d with a wrong one, %d malformed", c.RoCE, c.Right, c.Wrong, c.Malformed)
}

// fine reports whether there is nothing but packets with a right ICRC.
func (c Counts) fine() bool {
	return c == Counts{Packets: c.Packets, RoCE: c.Packets, Right: c.Packets}
}

func (c *Counts) add(d Counts) {
	c.Packets += d.Packets
	c.RoCE += d.RoCE
	c.Right += d.Right
	c.Wrong += d.Wrong
	c.Malformed += d.Malformed
}

// parseCounts reads the line.
func parseCounts(line string) (c Counts, err error) {
	_, err = fmt.Sscanf(line, "packets=%d roce=%d icrc_ok=%d icrc_bad=%d malformed=%d", &c.Packets, &c.RoCE, &c.Right, &c.Wrong, &c.Malformed)
	if err != nil {
		err = wrong("hixl dump ends with %q", brief(line))
	}
	return c, err
}

// dump puts a capture through hixl dump.
func (b *Bench) dump(ctx context.Context, capture string) error {
	cmd := exec.CommandContext(ctx, b.Hixl, "dump", capture)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	last := ""
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		last = lines.Text()
	}
	c, bad := parseCounts(last)
	b.dumped.add(c)
	_, _ = io.Copy(io.Discard, out) // or it cannot end
	if err := errors.Join(lines.Err(), cmd.Wait(), bad); err != nil {
		return fmt.Errorf("hixl dump %s: %w", capture, err)
	}
	return nil
}

// decode puts the captures that wait through hixl dump, compares them with what
// tshark makes of them, and removes them.
func (b *Bench) decode(ctx context.Context) error {
	captures := b.captures
	b.captures, b.packets = nil, 0
	if len(captures) == 0 {
		return nil
	}
	var err error
	for _, c := range captures {
		err = errors.Join(err, b.dump(ctx, c))
	}
	r, bad := tshark.Compare(ctx, captures...)
	err = errors.Join(err, bad)
	b.decoded.Packets += r.Packets
	b.decoded.Differences = append(b.decoded.Differences, r.Differences...)
	if err != nil || len(r.Differences) > 0 || b.Keep {
		return err // they are worth a look
	}
	for _, c := range captures {
		if !b.keep[c] {
			err = errors.Join(err, os.Remove(c))
		}
	}
	return err
}

// decodeRest is the last cell.
func (b *Bench) decodeRest(ctx context.Context) Outcome {
	o := Outcome{
		Case: "hixl dump finds every packet on the bridge right, tshark decodes it alike", Role: None, Peer: b.peer(), Status: Pass, group: "Packets",
	}
	start := time.Now()
	err := errors.Join(b.failed, b.decode(ctx))
	o.took = time.Since(start)
	o.Detail = fmt.Sprintf("hixl dump: %v; tshark: %d packets, %d fields that differ", b.dumped, b.decoded.Packets, len(b.decoded.Differences))
	if err != nil || len(b.decoded.Differences) > 0 || !b.dumped.fine() || b.decoded.Packets != b.dumped.Packets {
		o.Status = Fail
		o.Detail = join(o.Detail, strings.Join(b.decoded.Differences, "; "))
		if err != nil {
			o.Detail = join(o.Detail, err.Error())
		}
	}
	return o
}
