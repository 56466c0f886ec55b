package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/pingpong"
)

func newPingpongCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pingpong {rc|uc|ud} [HOST]",
		Short: "The libibverbs pingpongs: ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong",
		Long: `Send a message to and fro. Without HOST wait for a client, with it connect to that
server. The other end may be hixl or the original of the same service, which
needs a GID index of an IP address there (ibv_rc_pingpong -g 1).

With -c at both ends every byte of every message is compared, and a difference
ends the run with exit status 1. A run that could not be completed ends with 2.`,
		Example: `  hixl pingpong rc                           # server
  hixl pingpong rc -s 65536 -c 10.0.0.2      # client
  hixl pingpong rc 127.0.0.2                 # client on the server's own machine
  ibv_rc_pingpong -d rxe0 -g 1 10.0.0.1      # an original as the client`,
		Args: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("pingpong needs a service, and got %q: rc, uc or ud", args)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	for _, s := range []struct {
		name    string
		service hixl.Type
		what    string
	}{
		{"rc", hixl.RC, "over a reliable connection, as ibv_rc_pingpong"},
		{"uc", hixl.UC, "over an unreliable connection, as ibv_uc_pingpong"},
		{"ud", hixl.UD, "in datagrams, as ibv_ud_pingpong"},
	} {
		c.AddCommand(newPingpong(s.name, s.service, s.what, c.Long))
	}
	return c
}

// pingpongIdle are the flags of the originals that choose a device.
var pingpongIdle = []idle{
	{"gid-idx", "--local chooses the address"},
	{"ib-dev", "--local chooses the address"},
	{"ib-port", "there is one port"},
	{"sl", "service levels are not carried over UDP"},
	{"events", "completions are always slept for"},
}

func newPingpong(name string, service hixl.Type, what, long string) *cobra.Command {
	cfg := pingpong.Config{Service: service}
	var n nicFlags
	c := &cobra.Command{
		Use: name + " [HOST]", Short: "Pingpong " + what, Long: "Pingpong " + what + ".\n\n" + long,
		Args: hostArg("hixl pingpong " + name + " [HOST]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := n.set(&cfg.Common); err != nil {
				return err
			}
			if len(args) == 1 {
				cfg.Host = args[0]
			}
			announce(c, &cfg.Common)
			noteIdle(c, pingpongIdle)
			ctx, stop := untilSignal(c)
			defer stop()
			_, err := pingpong.Run(ctx, cfg)
			return err
		},
	}
	commonFlags(c, &cfg.Common, &n, tools.DefaultPort)
	bindFlag(c, &cfg.Common)
	f := c.Flags()
	size := pingpong.DefaultSize
	if service == hixl.UD {
		size = pingpong.DefaultSizeUD
	}
	f.IntVarP(&cfg.Size, "size", "s", size, "bytes of a message, the same at both ends")
	f.IntVarP(&cfg.Iters, "iters", "n", pingpong.DefaultIters, "number of exchanges, the same at both ends")
	if service != hixl.UD {
		f.IntVarP(&cfg.MTU, "mtu", "m", pingpong.DefaultMTU, "path MTU: 256, 512, 1024, 2048 or 4096, the same at both ends")
	}
	f.IntVarP(&cfg.RxDepth, "rx-depth", "r", pingpong.DefaultRxDepth, "receives to post at a time")
	f.BoolVarP(&cfg.Check, "chk", "c", false, "compare all data; both ends need it")
	f.BoolP("events", "e", false, "no effect: completions are always slept for")
	f.IntP("gid-idx", "g", 0, "no effect: --local chooses the address")
	f.StringP("ib-dev", "d", "", "no effect: --local chooses the address")
	f.IntP("ib-port", "i", 1, "no effect: there is one port")
	f.IntP("sl", "l", 0, "no effect: service levels are not carried over UDP")
	return c
}
