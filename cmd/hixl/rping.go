package main

import (
	"cmp"
	"errors"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/rping"
)

func newRpingCommand() *cobra.Command {
	var cfg rping.Config
	var n nicFlags
	var addr, source string
	var server, client bool
	c := &cobra.Command{
		Use:   "rping {-s | -c -a ADDR}",
		Short: "rping of librdmacm: READ a ball from the client, WRITE it back",
		Long: `Connect by RDMA CM, and let the server fetch the client's ball by READ and bring it
back by WRITE. The other end may be hixl or the original. Everything goes over UDP
port 4791.

With -V every byte of every ball is compared, and a difference ends the run with exit
status 1, as does a client that plays fewer rounds than a server's -C. A run that
could not be completed ends with 2.`,
		Example: `  hixl rping -s -V -v
  hixl rping -c -a 10.0.0.2 -C 10 -S 1000 -V
  rping -c -a 10.0.0.1 -C 10 -V              # the original as the client
  hixl rping -s -a 127.0.0.2                 # both ends on one machine: the server,
  hixl rping -c -a 127.0.0.2 -C 10           # and its client, on 127.0.0.1`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if server == client {
				return errors.New("rping needs a side: -s for the server, or -c with the server's address, -a")
			}
			own, err := rpingAddress(&cfg, client, addr)
			if err != nil {
				return err
			}
			n.local = cmp.Or(n.local, source, own)
			if err := n.set(&cfg.Common); err != nil {
				return err
			}
			announce(c, &cfg.Common)
			noteIdle(c, []idle{{"debug", "tcpdump and hixl dump show the packets"}})
			ctx, stop := untilSignal(c)
			defer stop()
			_, err = rping.Run(ctx, cfg)
			return err
		},
	}
	commonFlags(c, &cfg.Common, &n, rping.DefaultPort)
	f := c.Flags()
	f.BoolVarP(&server, "server", "s", false, "be the server")
	f.BoolVarP(&client, "client", "c", false, "be the client")
	f.StringVarP(&addr, "address", "a", "", "client: the server's address; server: its own")
	f.StringVarP(&source, "source", "I", "", "client: its own address, as --local")
	f.IntVarP(&cfg.Count, "count", "C", 0, "rounds, 0 for no end; a server insists on them")
	f.IntVarP(&cfg.Size, "size", "S", rping.DefaultSize, "bytes of the ball, 26 to 65535")
	f.BoolVarP(&cfg.Verbose, "verbose", "v", false, "print every ball")
	f.BoolVarP(&cfg.Validate, "validate", "V", false, "compare every byte of every ball")
	f.BoolP("debug", "d", false, "no effect: tcpdump and hixl dump show the packets")
	return c
}

// rpingAddress reads -a: the client's server, or a server's own address, which it
// returns unless it stands for any.
func rpingAddress(cfg *rping.Config, client bool, addr string) (own string, err error) {
	if client {
		if addr == "" {
			return "", &tools.OptionError{Option: "-a", Value: "left out", Allowed: "a client needs the server's address"}
		}
		cfg.Host = addr
		return "", nil
	}
	if a, err := netip.ParseAddr(addr); err == nil && a.IsUnspecified() {
		return "", nil
	}
	return addr, nil
}
