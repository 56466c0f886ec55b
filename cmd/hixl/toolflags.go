package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gohixl/hixl/internal/tools"
)

// commonFlags adds the flags that all counterparts of RDMA tools share.
func commonFlags(c *cobra.Command, o *tools.Common, n *nicFlags, port int) {
	f := c.Flags()
	f.IntVarP(&o.Port, "port", "p", port, "server's port")
	n.add(f)
	f.DurationVar(&o.Patience, "patience", tools.DefaultPatience, "give up a peer that is silent for so long")
	f.BoolVar(&o.NoTrains, "no-trains", false, "send each packet by itself, no segmentation by the kernel")
	f.SortFlags = false
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	c.SetFlagErrorFunc(flagError)
}

// bindFlag adds the flag of servers that wait on TCP.
func bindFlag(c *cobra.Command, o *tools.Common) {
	c.Flags().StringVar(&o.Bind, "bind", "", "server: listen on this address only (default: all)")
}

// announce lets a server say that it listens, to whoever waits to start a client.
func announce(c *cobra.Command, o *tools.Common) {
	o.Out = c.OutOrStdout()
	o.Ready = func(a net.Addr) { _, _ = fmt.Fprintf(c.ErrOrStderr(), "listening on %v\n", a) }
}

// flagError adds the flags there are to what is wrong with one.
func flagError(c *cobra.Command, err error) error {
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Shorthand != "" {
			known = append(known, "-"+f.Shorthand+"/--"+f.Name)
		} else {
			known = append(known, "--"+f.Name)
		}
	})
	return fmt.Errorf("%s: %w; it knows %s (see %s --help)", c.CommandPath(), err, strings.Join(known, " "), c.CommandPath())
}

// idle is a flag of an original that has nothing to act on here. It is taken, so
// that command lines can be reused, and a note says so.
type idle struct{ flag, why string }

// note tells about the idle flags that were given.
func noteIdle(c *cobra.Command, flags []idle) {
	for _, i := range flags {
		if f := c.Flags().Lookup(i.flag); f != nil && f.Changed {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "note: -%s has no effect: %s\n", f.Shorthand, i.why)
		}
	}
}

// hostArg takes the one argument of a client, the server.
func hostArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one host at most, and got %q: %s", c.CommandPath(), args, what)
		}
		return nil
	}
}

// untilSignal returns a context that ends when the user or the system ends the
// program, so that a tool can tell its peer. A second signal does not wait.
func untilSignal(c *cobra.Command) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
