package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/perf"
)

const perfHelp = `Without HOST wait for a client, with it connect to that server and run the test.
The other end may be hixl or perftest's program of the same name (ib_%[1]s),
4.5 of Debian 12 for one. Give both ends the same flags, as with perftest; -n and -s
matter at the client only, unless the server sends or receives too.

The NIC of this side is on the address that the connection to the peer has here, or
on --local. Against perftest on rdma_rxe its GID index (-x there) must be that of an
address of the same IP version; for IPv6 give --local here, since perftest exchanges
over IPv4 whatever the GID.

What arrives is checked: status and length of every message, the values that atomics
return, and if the peer is hixl too, every byte. Exit status: 0 when everything
completed and was right, 1 when data was wrong or missing, 2 when the test could not
be run to its end.`

func newPerfCommand() *cobra.Command {
	var names []string
	for _, t := range perf.Tests() {
		names = append(names, t.String())
	}
	all := strings.Join(names, " ")
	c := &cobra.Command{
		Use:   "perf TEST [HOST]",
		Short: "perftest's tests: " + all,
		Long:  "Measure bandwidth or latency as perftest does, against it or against hixl.\n\n" + fmt.Sprintf(perfHelp, "write_bw"),
		Example: `  hixl perf write_bw                                   # server
  hixl perf write_bw -s 1M -q 4 10.0.0.2               # client
  hixl perf write_bw 127.0.0.2                         # client on the server's own machine
  hixl perf send_lat -c UD -s 1000 10.0.0.2
  ib_read_bw -d rxe0 -x 1 -F 10.0.0.1                  # perftest as the client`,
		Args: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("perf needs a test, and got %q: one of %s", args, all)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	for _, t := range perf.Tests() {
		c.AddCommand(newPerfTest(t))
	}
	return c
}

// perfIdle are perftest's flags that have nothing to act on here.
var perfIdle = []idle{
	{"gid-index", "--local chooses the address"},
	{"ib-dev", "--local chooses the address"},
	{"ib-port", "there is one port"},
	{"sl", "service levels are not carried over UDP; -T sets the TOS byte"},
}

// perfFlags are the flags that are read as text.
type perfFlags struct {
	nic                                nicFlags
	size, connection, atomic, duration string
}

func newPerfTest(t perf.Test) *cobra.Command {
	cfg := perf.Config{Test: t}
	var v perfFlags
	c := &cobra.Command{
		Use: t.String() + " [HOST]", Short: "As ib_" + t.String(),
		Long: "The counterpart of ib_" + t.String() + ".\n\n" + fmt.Sprintf(perfHelp, t),
		Args: hostArg("hixl perf " + t.String() + " [HOST]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := v.set(&cfg); err != nil {
				return err
			}
			if len(args) == 1 {
				cfg.Host = args[0]
			}
			noteIdle(c, perfIdle)
			return runPerf(c, cfg)
		},
	}
	commonFlags(c, &cfg.Common, &v.nic, tools.DefaultPort)
	bindFlag(c, &cfg.Common)
	addPerfFlags(c, &cfg, &v)
	return c
}

func runPerf(c *cobra.Command, cfg perf.Config) error {
	announce(c, &cfg.Common)
	ctx, stop := untilSignal(c)
	defer stop()
	_, err := perf.Run(ctx, cfg)
	return err
}

// addPerfFlags adds perftest's flags, those that a test has no use for left out.
func addPerfFlags(c *cobra.Command, cfg *perf.Config, v *perfFlags) {
	f, t := c.Flags(), cfg.Test
	bw, pulls := t.Kind == perf.Bandwidth, t.Verb == perf.Read || t.Verb == perf.Atomic
	if t.Verb == perf.Atomic {
		f.StringVarP(&v.atomic, "atomic-type", "A", "FETCH_AND_ADD", "FETCH_AND_ADD or CMP_AND_SWAP")
	} else {
		f.StringVarP(&v.size, "size", "s", "", "bytes of a message, K and M allowed (default 65536, latency 2)")
		f.BoolVarP(&cfg.All, "all", "a", false, "all sizes from 2 to 2^23, UD to the path MTU")
	}
	f.IntVarP(&cfg.Iters, "iters", "n", 0, "messages of a queue pair (default 1000, write_bw 5000)")
	f.StringVarP(&v.duration, "duration", "D", "", "run for so many seconds instead; the first and last quarter do not count")
	f.StringVarP(&v.connection, "connection", "c", "RC", map[bool]string{true: "RC", false: "RC, UC, or UD for sends"}[pulls])
	f.IntVarP(&cfg.MTU, "mtu", "m", 0, "largest path MTU: 256 to 4096 (default what the link takes)")
	f.IntVarP(&cfg.Timeout, "qp-timeout", "u", 0, "ACK timeout, 4.096 µs · 2^N (default 14, with -R what RDMA CM says)")
	f.IntVarP(&cfg.TrafficClass, "tos", "T", 0, "TOS byte of packets, 0 to 255")
	f.BoolVarP(&cfg.CM, "rdma-cm", "R", false, "connect by RDMA CM and exchange over it, no TCP; RC and UD")
	if bw {
		f.IntVarP(&cfg.QPs, "qp", "q", 1, "number of queue pairs")
		f.BoolVarP(&cfg.Bidirectional, "bidirectional", "b", false, "both ends send")
		f.IntVarP(&cfg.TxDepth, "tx-depth", "t", perf.DefaultTxDepth, "messages outstanding on a queue pair")
		f.IntVarP(&cfg.CQMod, "cq-mod", "Q", 0, "messages between completions (default 100, above 8192 bytes 1)")
		f.BoolVarP(&cfg.NoPeak, "noPeak", "N", false, "leave out the peak bandwidth")
		f.BoolVar(&cfg.Gbits, "report-gbits", false, "report Gb/s, not MiB/s")
	}
	if t.Verb == perf.Send {
		f.IntVarP(&cfg.RxDepth, "rx-depth", "r", 0, "receives posted on a queue pair (default 512, UC and UD as many as messages)")
	}
	if pulls {
		f.IntVarP(&cfg.Outs, "outs", "o", perf.MaxOuts, "READs or atomics in flight")
	} else {
		f.IntVarP(&cfg.Inline, "inline-size", "I", 0, "send messages up to this size inline, at most 256")
	}
	f.BoolP("CPU-freq", "F", false, "no effect: nothing here depends on the CPU's frequency")
	f.IntP("gid-index", "x", 0, "no effect: --local chooses the address")
	f.StringP("ib-dev", "d", "", "no effect: --local chooses the address")
	f.IntP("ib-port", "i", 1, "no effect: there is one port")
	f.IntP("sl", "S", 0, "no effect: service levels are not carried over UDP")
}

// set reads the flags that are text.
func (v *perfFlags) set(cfg *perf.Config) (err error) {
	if err := v.nic.set(&cfg.Common); err != nil {
		return err
	}
	if v.atomic != "" {
		if cfg.Atomic, err = perf.ParseAtomicType(v.atomic); err != nil {
			return &tools.OptionError{Option: "-A", Value: v.atomic, Allowed: "FETCH_AND_ADD or CMP_AND_SWAP"}
		}
	}
	if cfg.Size, err = parseSize(v.size); err != nil {
		return err
	}
	if cfg.Duration, err = parseSeconds(v.duration); err != nil {
		return err
	}
	services := map[string]hixl.Type{"RC": hixl.RC, "UC": hixl.UC, "UD": hixl.UD}
	var ok bool
	if cfg.Connection, ok = services[v.connection]; !ok {
		return &tools.OptionError{Option: "-c", Value: v.connection, Allowed: "RC, UC or UD"}
	}
	return nil
}

// parseSize reads a size as perftest does, with K and M for powers of 1024.
func parseSize(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	number, factor := s, 1
	switch s[len(s)-1] {
	case 'K':
		number, factor = s[:len(s)-1], 1<<10
	case 'M':
		number, factor = s[:len(s)-1], 1<<20
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > perf.MaxSize/factor {
		return 0, &tools.OptionError{Option: "-s", Value: s, Allowed: "a number of bytes from 1 to 1024M, such as 100, 64K or 1M"}
	}
	return n * factor, nil
}

// parseSeconds reads a duration: a number is seconds, as for perftest.
func parseSeconds(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	text := s
	if strings.Trim(s, "0123456789.") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, &tools.OptionError{Option: "-D", Value: s, Allowed: "a time above 0: 10, or 500ms"}
	}
	return d, nil
}
