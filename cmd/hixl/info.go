package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/internal/hostinfo"
	"github.com/gohixl/hixl/transport/xdp"
)

func newInfoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info",
		Short: "Report what this host offers, and what is missing costs",
		Long: `Try what a RoCEv2 stack on plain sockets can use here: segmentation and
coalescing of UDP, batched system calls, socket buffers, AF_XDP, UDP port 4791,
IPv6, CPU features, huge pages, and path MTU and AF_XDP of each interface. A line for
each, with one of

  ok        there, and enough of it
  limited   there, but less than the stack can use
  missing   not there
  unknown   could not be tried

and, for all but the first, what it costs and how to get it. No privilege is
needed, and nothing is changed.`,
		Example: `  hixl info
  hixl info --json | jq '.checks[] | select(.state != "ok")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("info takes no arguments, and got %q: hixl info, or hixl info --json", args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			r := hostinfo.Probe()
			r.Checks = append(r.Checks, deviceChecks()...)
			for i := range r.Interfaces {
				r.Interfaces[i].XDP = xdp.Describe(r.Interfaces[i].Name)
			}
			if !asJSON {
				return r.WriteText(c.OutOrStdout())
			}
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
