package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/internal/tools/cmatose"
)

func newUcmatoseCommand() *cobra.Command {
	cfg := cmatose.Defaults()
	var n nicFlags
	var bind string
	c := &cobra.Command{
		Use:   "ucmatose [-s ADDR]",
		Short: "ucmatose of librdmacm: open connections, send messages each way, close them",
		Long: `Open connections by RDMA CM, send messages each way over every one, and close them.
Without -s wait for a client. The other end may be hixl or the original, with the
same -c, -C and -S. Everything goes over UDP port 4791.

Lengths are checked, and between two ends of hixl every byte. Exit status: 0 when all
arrived, 1 when it was wrong, 2 when the test could not be run to its end.`,
		Example: `  hixl ucmatose -c 4
  hixl ucmatose -s 10.0.0.2 -c 4
  ucmatose -s 10.0.0.1 -c 4                  # the original as the client
  hixl ucmatose -b 127.0.0.2                 # both ends on one machine: the server,
  hixl ucmatose -s 127.0.0.2                 # and its client, on 127.0.0.1`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			n.local = cmp.Or(n.local, bind)
			if err := n.set(&cfg.Common); err != nil {
				return err
			}
			announce(c, &cfg.Common)
			noteIdle(c, []idle{{"format", "-s takes names and addresses"}})
			ctx, stop := untilSignal(c)
			defer stop()
			_, err := cmatose.Run(ctx, cfg)
			return err
		},
	}
	commonFlags(c, &cfg.Common, &n, cmatose.DefaultPort)
	f := c.Flags()
	f.StringVarP(&cfg.Host, "server", "s", "", "be the client of this server")
	f.StringVarP(&bind, "bind", "b", "", "own address, as --local")
	f.IntVarP(&cfg.Connections, "connections", "c", cmatose.DefaultConnections, "number of connections")
	f.IntVarP(&cfg.Messages, "count", "C", cmatose.DefaultMessages, "messages each way over a connection")
	f.IntVarP(&cfg.Size, "size", "S", cmatose.DefaultSize, "bytes of a message; 0 sends none")
	f.IntVarP(&cfg.TrafficClass, "tos", "t", 0, "client: TOS byte of packets, 0 to 255")
	f.IntVarP(&cfg.Timeout, "ack-timeout", "a", 0, "ACK timeout, 4.096 µs · 2^N (default what RDMA CM says)")
	f.StringP("format", "f", "", "no effect: -s takes names and addresses")
	return c
}

// noArgs is for commands that only have flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes only flags, and got %q: see %[1]s --help", c.CommandPath(), args)
	}
	return nil
}
