//go:build linux

// Command interop runs the interoperability matrix against real rdma_rxe in
// guests of its own. It needs root and Debian.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/matrix"
)

type options struct {
	backend string
	match   string
	xdp     string
	smoke   bool
	list    bool
	keep    bool
	write   bool
	setup   bool
}

func main() {
	var o options
	flag.StringVar(&o.backend, "backend", string(lab.UML), "what runs the guests: uml (user-mode Linux, built once) or qemu (Debian's kernel, slow)")
	flag.StringVar(&o.match, "run", "", "only cells whose \"name [role]\" matches the regular expression")
	flag.StringVar(&o.xdp, "xdp", os.Getenv(matrix.CarrierEnv), "our end on raw frames instead of sockets: native, generic, or native,generic for one after the other")
	flag.BoolVar(&o.smoke, "smoke", false, "only the short run")
	flag.BoolVar(&o.list, "list", false, "list the cells and exit")
	flag.BoolVar(&o.keep, "keep", false, "keep the captures of cells that pass")
	flag.BoolVar(&o.write, "write", false, "write interop/report.json and interop/INTEROP.md, on raw frames interop/xdp-report.json and interop/INTEROP-XDP.md")
	flag.BoolVar(&o.setup, "setup", false, "prepare everything and exit")
	flag.Parse()
	code, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(o options) (int, error) {
	carriers, err := matrix.ParseCarriers(o.xdp)
	if err != nil {
		return 2, err
	}
	s := matrix.Selection{Smoke: o.smoke, Carriers: carriers}
	if o.match != "" {
		re, err := regexp.Compile(o.match)
		if err != nil {
			return 2, err
		}
		s.Match = re
	}
	if o.list {
		for _, name := range matrix.List(s) {
			fmt.Println(name)
		}
		return 0, nil
	}
	if lab.Inside() {
		return inside(o, s)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := prepare(ctx, o); err != nil || o.setup {
		return 0, err
	}
	stop() // from here on the process inside decides
	code, err := lab.Reexec()
	if code == notBooted {
		fmt.Println("once more, in new namespaces")
		code, err = lab.Reexec()
	}
	return code, err
}

// notBooted is the exit status of a process inside whose guests do not boot.
const notBooted = 3

// prepare makes what the run needs, while there still is a network.
func prepare(ctx context.Context, o options) error {
	start := time.Now()
	img, err := matrix.Prepare(ctx, lab.Backend(o.backend), os.Stderr)
	if err != nil {
		return err
	}
	fmt.Printf("prepared in %.1f s: %s, Linux %s\n", time.Since(start).Seconds(), img.Backend, img.Release)
	return nil
}

// inside runs the cells.
func inside(o options, s matrix.Selection) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := matrix.Boot(ctx, lab.Backend(o.backend))
	if err != nil {
		return notBooted, err
	}
	fmt.Printf("%d guests booted in %.1f s\n", matrix.Guests, b.Lab.BootTime.Seconds())
	for _, why := range b.Lab.Reboots {
		fmt.Println("booted again:", why)
	}
	b.Keep = o.keep
	start := time.Now()
	r := b.RunAll(ctx, matrix.Table(), s, func(o matrix.Outcome) { fmt.Println(o) })
	r.Command = command(os.Args[1:])
	failed := r.Failed()
	for _, l := range r.Late() {
		fmt.Println("LATE:", l)
		tell(l.Log, o.smoke)
	}
	for _, f := range failed {
		fmt.Println("FAILED:", f)
		tell(f.Log, o.smoke)
	}
	fmt.Printf("%d cells, %d failed, %d passed at another attempt than the first, in %.0f s\n", len(r.Outcomes), len(failed), len(r.Late()), time.Since(start).Seconds())
	out := b.Dir
	if o.write {
		out = filepath.Join(filepath.Dir(b.Lab.Image.Initramfs), "..", "..", "interop")
	}
	fmt.Println("report, and captures of what failed:", out, b.Dir)
	if err := errors.Join(r.Write(out), b.Lab.Close(), ctx.Err()); err != nil {
		return 1, err
	}
	if len(failed) > 0 {
		return 1, nil
	}
	return 0, nil
}

// command is a command line that does what this one did.
func command(args []string) string {
	line := "go run ./interop/cmd/interop"
	for _, a := range args {
		if strings.ContainsAny(a, " '\"|*()[]^$\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		line += " " + a
	}
	return line
}

// tell shows what was noted of a failure, or where that is.
func tell(log string, whole bool) {
	text, err := os.ReadFile(log)
	if log == "" || err != nil {
		return
	}
	if !whole {
		fmt.Println("  more is in", log)
		return
	}
	fmt.Printf("%s\n", text)
}
