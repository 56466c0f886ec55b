//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/tshark"
)

// Selection says which cells to run.
type Selection struct {
	Smoke bool           // only those of the short run
	Match *regexp.Regexp // name and role must match; nil is all
	// Carriers are what our end is on, one after the other; none is sockets.
	Carriers []Carrier
}

// takes reports whether a cell in a role is meant. The text is as progress shows
// it.
func (s Selection) takes(c *Cell, role Role) bool {
	if s.Smoke && !c.Smoke {
		return false
	}
	return s.Match == nil || s.Match.MatchString(c.Name+" ["+string(role)+"]")
}

// RunAll runs what is selected of cells and tells of each outcome as it comes.
func (b *Bench) RunAll(ctx context.Context, cells []Cell, s Selection, tell func(Outcome)) *Report {
	r := &Report{Image: b.Lab.Image, Date: time.Now(), Commit: commit(ctx), Host: hostRelease()}
	for st := range s.steps(cells) {
		if ctx.Err() != nil {
			return r
		}
		b.carrier = st.carrier
		o := b.Run(ctx, st.cell, st.role)
		r.Outcomes = append(r.Outcomes, o)
		tell(o)
		if b.packets >= tsharkBatch {
			b.failed = errors.Join(b.failed, b.decode(ctx))
		}
	}
	o := b.decodeRest(ctx)
	r.Outcomes = append(r.Outcomes, o)
	r.Dump, r.Decoded, r.Tshark = b.dumped, b.decoded.Packets, tshark.Version(ctx)
	tell(o)
	return r
}

// commit names what is tested. That the report was written anew changes nothing
// that is.
func commit(ctx context.Context) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	hash, err := git("rev-parse", "--short=10", "HEAD")
	if err != nil {
		return "unknown"
	}
	changed, err := git("status", "--porcelain", "--", ":/", ":(exclude,top)interop/"+jsonFile, ":(exclude,top)interop/"+textFile,
		":(exclude,top)interop/"+jsonFileXDP, ":(exclude,top)interop/"+textFileXDP)
	if err != nil || changed != "" {
		hash += "-dirty"
	}
	return hash
}

func hostRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(b)), "-") // the rest is the machine's own business
	return version
}

// String is the outcome in a line.
func (o Outcome) String() string {
	on := ""
	if o.Carrier != "" {
		on = " on " + o.Carrier
	}
	return fmt.Sprintf("%-4s %6.2fs %s [%s]%s %s", o.Status, o.took.Seconds(), o.Case, o.Role, on, o.Detail)
}

// Guests is how many guests the matrix needs.
const Guests = 2

// dirEnv tells the process in the lab's namespaces which folder is its own.
const dirEnv = "HIXL_INTEROP_DIR"

// Prepare makes the image of a backend, a folder for the run and in it the binary
// under test, for Boot in the process that [lab.Reexec] starts.
func Prepare(ctx context.Context, backend lab.Backend, log io.Writer) (*lab.Image, error) {
	img, err := lab.Prepare(ctx, backend, log)
	if err != nil {
		return nil, err
	}
	dir, err := img.Claim()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/",
		"github.com/gohixl/hixl/cmd/hixl", "github.com/gohixl/hixl/cmd/hixl-bench", "github.com/gohixl/hixl/interop/cmd/verbs")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building hixl: %w: %s", err, out)
	}
	return img, os.Setenv(dirEnv, dir)
}

// Programs of ours.
const (
	binary      = "hixl"
	benchBinary = "hixl-bench"
	verbsBinary = "verbs"
)

// Boot boots a lab for the matrix and makes the bench.
func Boot(ctx context.Context, backend lab.Backend) (*Bench, error) {
	img, err := lab.Load(backend)
	if err != nil {
		return nil, err
	}
	dir := os.Getenv(dirEnv)
	l, err := lab.Boot(ctx, img, lab.Options{Guests: Guests, Dir: dir})
	if err != nil {
		return nil, err
	}
	return &Bench{Lab: l, Hixl: filepath.Join(dir, binary), Dir: dir, keep: make(map[string]bool)}, nil
}

// List returns the cells that are selected, each with its role, as text.
func List(s Selection) []string {
	var names []string
	for st := range s.steps(Table()) {
		name := fmt.Sprintf("%s: %s [%s]", st.cell.Group, st.cell.Name, st.role)
		if st.carrier != Sockets {
			name += fmt.Sprintf(" on %v", st.carrier)
		}
		names = append(names, name)
	}
	return names
}
