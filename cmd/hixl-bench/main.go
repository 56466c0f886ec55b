// Command hixl-bench measures RDMA operations over loopback: it starts a second
// process of itself as the peer, moves verified bytes between 127.0.0.1 and
// 127.0.0.2 as RoCEv2 packets over UDP port 4791, and compares them with Go TCP
// and a plain copy in the same run. Run it with --help for its flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gohixl/hixl/bench"
)

// Exit statuses.
const (
	exitFailed      = 1   // a run failed, or bytes were wrong
	exitUsage       = 2   // a flag cannot work
	exitInterrupted = 130 // as shells report SIGINT; the cells that were finished are printed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	err := command().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	if err == nil {
		return
	}
	if status := exitError(0); errors.As(err, &status) {
		os.Exit(int(status)) // and has said why
	}
	if interrupted && !errors.Is(err, bench.ErrVerify) {
		fmt.Fprintln(os.Stderr, "hixl-bench: interrupted")
		os.Exit(exitInterrupted)
	}
	fmt.Fprintln(os.Stderr, "hixl-bench:", err)
	if errors.Is(err, bench.ErrFlag) || errors.Is(err, errUsage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}
