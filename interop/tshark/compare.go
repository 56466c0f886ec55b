package tshark

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
)

// maxDifferences bounds what is reported of one comparison.
const maxDifferences = 20

// pcapHead is the length of what a capture file begins with.
const pcapHead = 24

// Result is what a comparison found.
type Result struct {
	Packets     int
	Differences []string // a line each, the first ones
}

// ErrTshark is what not being able to compare unwraps to.
var ErrTshark = errors.New("tshark")

// Version is the program's, or "unknown".
func Version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "tshark", "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n") // TShark (Wireshark) 4.0.17 (...).
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		return "unknown"
	}
	return strings.TrimSuffix(words[2], ".")
}

// Compare reads capture files in the pcap format of Ethernet frames with RoCEv2
// packets, all written on this machine, as one.
func Compare(ctx context.Context, paths ...string) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args := []string{"-n", "-r", "-", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=f"}
	for _, f := range fields {
		args = append(args, "-e", f.name)
	}
	cmd := exec.CommandContext(ctx, "tshark", args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, err
	}
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrTshark, err)
	}
	fed := make(chan error, 1)
	go func() { fed <- errors.Join(concatenate(in, paths), in.Close()) }()
	r, err := lockstep(out, paths)
	if err != nil {
		cancel()
	}
	_, _ = io.Copy(io.Discard, out) // or it cannot end
	feeding := <-fed
	if end := cmd.Wait(); err == nil && end != nil {
		err = fmt.Errorf("%w: %w: %s", ErrTshark, end, strings.TrimSpace(complaint.String()))
	}
	if err == nil {
		err = feeding
	}
	return r, err
}

// concatenate writes the files as one.
func concatenate(w io.Writer, paths []string) error {
	for i, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		if i > 0 {
			_, err = f.Seek(pcapHead, io.SeekStart)
		}
		if err == nil {
			_, err = io.Copy(w, f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lockstep reads tshark's lines beside the packets.
func lockstep(lines io.Reader, paths []string) (r Result, err error) {
	in := bufio.NewReader(lines)
	for _, p := range paths {
		if err := r.file(in, p); err != nil {
			return r, fmt.Errorf("%s: %w", p, err)
		}
	}
	return r, nil
}

func (r *Result) file(lines *bufio.Reader, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	packets, err := dump.NewReader(f)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		var raw dump.Packet
		switch err := packets.Next(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("%w: no line for packet %d: %w", ErrTshark, n, err)
		}
		r.Packets++
		for _, d := range differences(raw.Data, strings.TrimSuffix(line, "\n")) {
			if len(r.Differences) < maxDifferences {
				r.Differences = append(r.Differences, fmt.Sprintf("%s packet %d: %s", path, n, d))
			}
		}
	}
}

// differences compares one packet.
func differences(data []byte, line string) []string {
	var frame roce.Frame
	var p roce.Packet
	values := strings.Split(line, "\t")
	if len(values) != len(fields) {
		return []string{fmt.Sprintf("%d fields instead of %d", len(values), len(fields))}
	}
	err := roce.DecodeFrame(roce.LinkEthernet, data, &frame)
	if errors.Is(err, roce.ErrNotRoCE) && values[opcodeField] == "" {
		return nil
	}
	if err == nil {
		err = p.Decode(frame.Payload)
	}
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for i, f := range fields {
		if f.has != 0 && unknown[p.Opcode] || values[i] == "" && mayLack[f.name] {
			continue
		}
		want, there := uint64(0), f.in(&p)
		if there {
			want = f.value(&p, &frame)
		}
		if d := compare(f.name, values[i], want, there); d != "" {
			all = append(all, fmt.Sprintf("%v: %s: %s", p.Opcode, f.name, d))
		}
	}
	return all
}

func compare(name, theirs string, ours uint64, there bool) string {
	switch {
	case theirs == "" && !there:
		return ""
	case theirs == "":
		return fmt.Sprintf("tshark sees none, here it is %#x", ours)
	case !there:
		return fmt.Sprintf("tshark sees %s, here there is none", theirs)
	}
	base := 0
	if bytes[name] {
		base = 16
	}
	n, err := strconv.ParseUint(theirs, base, 64)
	if err != nil || n != ours {
		return fmt.Sprintf("tshark sees %s, here it is %#x", theirs, ours)
	}
	return ""
}
