package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gohixl/hixl/bench"
)

// errUsage marks a command line that cannot be read.
var errUsage = errors.New("see hixl-bench --help")

// options are the flags.
type options struct {
	ops       opList
	sizes     bench.SizeList
	qps       bench.CountList
	depths    bench.CountList
	mtus      bench.CountList
	baselines bench.BaselineList
	cfg       bench.Config
	local     string
	memory    string
	json, csv bool
	profile   string
	carrier   carrier
	serve     bool
	listen    string
}

// command builds the command line.
func command() *cobra.Command {
	o := &options{
		qps:    bench.CountList{Flag: "qps", Min: 1, Max: bench.MaxQPs},
		depths: bench.CountList{Flag: "depth", Min: 1, Max: bench.MaxDepth, Zero: "a choice by size"},
		mtus:   bench.CountList{Flag: "mtu", Min: 256, Max: 4096, Zero: "the largest that fits"},
	}
	c := &cobra.Command{
		Use:   "hixl-bench",
		Short: "Measure RDMA operations over RoCEv2 between two processes, verified, against TCP",
		Long: `hixl-bench starts a second process of itself as the peer, connects 127.0.0.1 and
127.0.0.2 (UDP port 4791 on both) and measures one-sided and two-sided operations:
bandwidth with many messages outstanding, latency with one. Every byte of
ours, tcp, shm and memcpy is verified. The baselines move the same sizes in the same rounds.`,
		Example: `  hixl-bench
  hixl-bench --op write,read --size 4k,1MiB --duration 2s --rounds 7 --json
  hixl-bench --loss 0.01 --reorder 0.01
  hixl-bench --serve --local 10.0.0.2          # there
  hixl-bench --peer 10.0.0.2 --local 10.0.0.1  # here`,
		Args: noArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if bad := (*bench.FlagError)(nil); errors.As(err, &bad) {
			return bad
		}
		return fmt.Errorf("%w; %w", err, errUsage)
	})
	o.flags(c)
	c.AddCommand(peerCommand(), compareCommand(), floorsCommand())
	c.CompletionOptions.DisableDefaultCmd = true
	return c
}

// noArgs refuses words that are no flags.
func noArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	return nil
}

func (o *options) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.Var(&o.ops, "op", "operations: write, read, send, write-imm, cas, faa (default all); or coalesce alone, which compares ways to move many small writes")
	f.Var(&o.sizes, "size", "message sizes, such as 64,4k,64KiB,1MiB (default 64,4KiB,64KiB,1MiB); atomics move 8 bytes")
	f.Var(&o.qps, "qps", "queue pairs (default 1)")
	f.Var(&o.depths, "depth", "messages outstanding on a queue pair (default 64, fewer when large or many)")
	f.Var(&o.mtus, "mtu", "path MTU: 256, 512, 1024, 2048, 4096 (default the largest that fits)")
	f.Var(&bench.Size{Flag: "region", Bytes: &o.cfg.Region}, "region", "length of the buffers that transfers walk through, ours and the baselines' (default 16MiB)")
	f.DurationVar(&o.cfg.Duration, "duration", bench.DefaultDuration, "timed bandwidth part of each cell, over all rounds; latency takes half of it on top")
	f.IntVar(&o.cfg.Rounds, "rounds", bench.DefaultRounds, "rounds, each of which measures every baseline and cell")
	f.Var(&o.baselines, "baseline", "what to compare with: "+bench.BaselineNames()+", or none (default tcp,memcpy)")
	f.BoolVar(&o.json, "json", false, "print one JSON object (go doc github.com/gohixl/hixl/bench.Report)")
	f.BoolVar(&o.csv, "csv", false, "print CSV")
	f.Uint64Var(&o.cfg.Seed, "seed", 0, "seed of pattern and faults (default a random one, which is printed)")
	f.Float64Var(&o.cfg.Faults.Loss, "loss", 0, "probability that a packet is lost, between NIC and socket on both sides")
	f.Float64Var(&o.cfg.Faults.Reorder, "reorder", 0, "probability that a packet is overtaken by later ones")
	f.Float64Var(&o.cfg.Faults.Duplicate, "duplicate", 0, "probability that a packet arrives twice")
	f.Float64Var(&o.cfg.Faults.Corrupt, "corrupt", 0, "probability that a bit of a packet is flipped")
	f.StringVar(&o.memory, "memory", "", "where regions lie: "+strings.Join(bench.MemoryKinds(), ", ")+"; two, separated by a comma, for this side and the peer (default host)")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process; of both sides with --in-process")
	f.StringVar(&o.local, "local", "", "RoCE address to use; two, separated by a comma, name the peer's as well, which else is the next one (default 127.0.0.1,127.0.0.2; with --peer and --serve the one that reaches the other end)")
	o.carrier.flags(f)
	o.carrier.netFlags(f)
	f.IntVar(&o.cfg.Shards, "shards", 0, "sockets of each NIC that receive: 1, 2 or 4; 0 is the default")
	f.BoolVar(&o.cfg.NoTrains, "no-trains", false, "send every packet on its own, on both sides")
	f.BoolVar(&o.cfg.LowLatency, "low-latency", false, "whoever waits looks for some 100 us before it parks, on both sides: Config.Progress is LowLatency")
	f.BoolVar(&o.cfg.InProcess, "in-process", false, "run the peer in this process")
	pinFlag(f, &o.cfg)
	f.StringVar(&o.cfg.Peer, "peer", "", "host or host:port where hixl-bench --serve runs")
	f.BoolVar(&o.serve, "serve", false, "be the peer of a hixl-bench --peer elsewhere, one at a time, until interrupted; a second one waits")
	f.StringVar(&o.listen, "listen", fmt.Sprintf(":%d", bench.DefaultPort), "TCP address for --serve; without a host, as by default, on all addresses of this machine")
}

// pinFlag is --pin, on unless it is turned off: two processes on one core or on two
// differ by more than anything that is measured here.
func pinFlag(f *pflag.FlagSet, cfg *bench.Config) {
	f.BoolVar(&cfg.Pin, "pin", true, "hold the two processes apart, each on its own half of the cores, baselines as well (Linux, two cores at least, both on this machine)")
}

// config puts the flags together.
func (o *options) config(c *cobra.Command) (bench.Config, error) {
	cfg := o.cfg
	cfg.Ops, cfg.Sizes, cfg.QPs, cfg.Depths, cfg.MTUs = o.ops.OpList, o.sizes, o.qps.Values, o.depths.Values, o.mtus.Values
	if c.Flags().Changed("baseline") {
		cfg.Baselines = o.baselines
	}
	for _, f := range []struct {
		name string
		zero bool
	}{{"duration", cfg.Duration == 0}, {"rounds", cfg.Rounds == 0}} {
		if f.zero { // zero means the default to Config, and a mistake here
			return cfg, &bench.FlagError{Flag: f.name, Given: "0", Allowed: "more than 0", Do: "leave it out for the default"}
		}
	}
	here, there, two := strings.Cut(o.memory, ",")
	if !two {
		there = here
	}
	cfg.Memory, cfg.PeerMemory = strings.TrimSpace(here), strings.TrimSpace(there)
	var err error
	if cfg.Local, cfg.PeerLocal, err = parseLocal(o.local); err != nil {
		return cfg, err
	}
	return cfg, o.carrier.config(&cfg, o.serve)
}

// parseLocal reads one address, or two.
func parseLocal(s string) (local, peer netip.Addr, err error) {
	if s == "" {
		return local, peer, nil
	}
	bad := &bench.FlagError{
		Flag: "local", Given: fmt.Sprintf("%q", s), Allowed: "an IP address of this machine, or two for this side and the peer",
		Do: "give such as 127.0.0.1 or 127.0.0.1,127.0.0.2",
	}
	first, second, two := strings.Cut(s, ",")
	if local, err = netip.ParseAddr(strings.TrimSpace(first)); err != nil || local.IsUnspecified() {
		return local, peer, bad
	}
	if two {
		if peer, err = netip.ParseAddr(strings.TrimSpace(second)); err != nil || peer.IsUnspecified() {
			return local, peer, bad
		}
	}
	return local, peer, nil
}

func (o *options) run(c *cobra.Command) error {
	if o.json && o.csv && !o.serve {
		return &bench.FlagError{Flag: "csv", Given: "with --json", Allowed: "one of the two", Do: "leave one out"}
	}
	cfg, err := o.config(c)
	if err != nil {
		return err
	}
	if o.serve {
		return o.serveRemote(c, cfg)
	}
	if o.carrier.netns && !inside() {
		return runInside(c.Context(), o.carrier.linkMTU)
	}
	if c.Flags().Changed("listen") {
		return &bench.FlagError{Flag: "listen", Given: o.listen, Allowed: "only with --serve", Do: "add --serve, or leave it out"}
	}
	if o.ops.coalesce {
		return o.coalesce(c, cfg)
	}
	cfg.Note = note
	stop, err := profileInto(o.profile)
	if err != nil {
		return err
	}
	defer stop()
	rep, err := bench.Run(c.Context(), cfg, bench.ProgressBar(os.Stderr))
	if rep == nil {
		return err
	}
	return errors.Join(err, o.print(c.OutOrStdout(), rep)) // both when it was interrupted
}

// profileInto starts a CPU profile into a file, unless it has no name, and
// returns what ends it.
func profileInto(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", errors.Join(err, f.Close()))
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			note("profile: " + err.Error())
		}
	}, nil
}

func (o *options) print(out io.Writer, rep *bench.Report) error {
	switch {
	case o.json:
		return rep.WriteJSON(out)
	case o.csv:
		return rep.WriteCSV(out)
	default:
		return rep.WriteTable(out)
	}
}

// requesterFlags are the flags that say what is measured and how it is told,
// which is not for --serve to choose.
var requesterFlags = []string{
	"op", "size", "qps", "depth", "mtu", "region", "duration", "rounds", "baseline", "json", "csv", "seed",
	"loss", "reorder", "duplicate", "corrupt", "in-process", "pin", "peer", "netns", "link-mtu", "no-trains", "shards", "low-latency", "memory", "cpuprofile",
}

// serveRemote is --serve.
func (o *options) serveRemote(c *cobra.Command, cfg bench.Config) error {
	const allowed = "--serve with --listen and one --local address"
	for _, f := range requesterFlags {
		if c.Flags().Changed(f) {
			return &bench.FlagError{Flag: f, Given: "with --serve", Allowed: allowed, Do: "give it to the requester, hixl-bench --peer"}
		}
	}
	if cfg.PeerLocal.IsValid() {
		return &bench.FlagError{Flag: "local", Given: fmt.Sprintf("%q with --serve", o.local), Allowed: allowed, Do: "leave the second address out"}
	}
	return cfg.Carrier.Listen(c.Context(), o.listen, cfg.Local, note)
}

// note tells what is no result.
func note(s string) { fmt.Fprintln(os.Stderr, "hixl-bench:", s) }

// peerCommand is what hixl-bench starts itself as.
func peerCommand() *cobra.Command {
	var k carrier
	c := &cobra.Command{
		Use: "peer", Hidden: true, Args: cobra.NoArgs, Short: "Be the peer, controlled over standard input and output",
		RunE: func(c *cobra.Command, _ []string) error {
			open, err := k.opener()
			if err != nil {
				return err
			}
			served := make(chan error, 1)
			go func() { served <- open.ServePeer(c.Context(), pollable(os.Stdin), os.Stdout, netip.Addr{}) }()
			select {
			case err := <-served:
				return err
			case <-c.Context().Done(): // standard input cannot be interrupted
				return context.Cause(c.Context())
			}
		},
	}
	k.flags(c.Flags())
	return c
}
