package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/internal/dump"
)

func newDumpCommand() *cobra.Command {
	var o dump.Options
	c := &cobra.Command{
		Use:   "dump FILE",
		Short: "Print the RoCEv2 packets of a capture and check their ICRCs",
		Long: `Print a line for each packet of a pcap or pcapng file ("-" reads standard input):
time since the first packet, addresses, opcode, queue pair, PSN, headers, payload
length and whether the ICRC is right. The last line counts:

  packets=N roce=N icrc_ok=N icrc_bad=N malformed=N

packets counts all traffic, roce the RoCEv2 packets that decoded, malformed what
goes to UDP port 4791 and is no packet. RoCEv1 frames are shown and not counted
as roce. A packet of which the capture kept only a part counts as roce, and its
ICRC as neither right nor wrong.

Exit status: 0, 1 if any ICRC is wrong, 2 if the capture could not be read to
its end.`,
		Example: `  hixl dump trace.pcapng
  tcpdump -i eth0 -U -w - udp port 4791 | hixl dump -
  hixl dump --json trace.pcap | jq 'select(.aeth.syndrome == "0x62")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("dump takes one capture file, or - for standard input, and got %d arguments: hixl dump FILE", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return runDump(args[0], c.InOrStdin(), c.OutOrStdout(), o)
		},
	}
	c.Flags().BoolVar(&o.JSON, "json", false, "print an object a line, the counts as the last one")
	return c
}

func runDump(name string, stdin io.Reader, out io.Writer, o dump.Options) error {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return openError(name, err)
		}
		defer f.Close()
		in = f
	}
	s, err := dump.Run(in, out, o)
	switch {
	case err != nil:
		return fmt.Errorf("dump %s: %w", name, err)
	case s.ICRCBad > 0:
		return &statusError{exitBad}
	}
	return nil
}

func openError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("dump %s: no such file; give a pcap or pcapng file, or - for standard input", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("dump %s: no permission to read it; change its mode, or pipe it in: hixl dump - < FILE", name)
	}
	return fmt.Errorf("dump %s: %w", name, err)
}
