package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/bench"
)

// compareCommand measures all contenders.
func compareCommand() *cobra.Command {
	o := &options{
		ops:       opList{OpList: bench.OpList{bench.OpWrite, bench.OpRead}},
		sizes:     bench.SizeList{64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20},
		baselines: bench.AllBaselines(),
	}
	var jsonFile, plotFile, into string
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure all contenders over a list of sizes, with a plot",
		Long: `compare measures operations and every baseline that can run here over a list of
sizes, in turns, and prints medians by size: the ratios of bandwidth and latency
with their spread, then what each contender did. It writes JSON, every round in
it, and a plot. What is not installed is named, with its package. A run that is
interrupted prints what it has and leaves files as they were.`,
		Example: `  hixl-bench compare --json-file compare.json --plot compare.html
  hixl-bench compare --op write --size 64,64k,1MiB --baseline tcp,shm`,
		Args: noArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg := o.cfg
			cfg.Ops, cfg.Sizes, cfg.Baselines, cfg.Note = o.ops.OpList, o.sizes, o.baselines, note
			var err error
			if cfg.Local, cfg.PeerLocal, err = parseLocal(o.local); err != nil {
				return err
			}
			if err := errors.Join(checkSection(into, "compare"), checkFile(jsonFile), checkFile(plotFile)); err != nil {
				return err
			}
			rep, err := bench.Run(c.Context(), cfg, bench.ProgressBar(os.Stderr))
			if rep == nil {
				return err
			}
			if err = errors.Join(err, rep.WriteComparison(c.OutOrStdout())); err != nil {
				return err // interrupted: files stay as they were
			}
			return errors.Join(updateSection(into, "compare", rep.WriteMarkdown), writeFile(jsonFile, rep.WriteJSON), writeFile(plotFile, rep.WritePlot))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.Var(&o.ops.OpList, "op", "operations: write, read, send, write-imm, cas, faa")
	f.Var(&o.sizes, "size", "message sizes")
	f.Var(&bench.Size{Flag: "region", Bytes: &o.cfg.Region}, "region", "length of the buffers that transfers walk through, ours and the baselines' (default 16MiB)")
	f.DurationVar(&o.cfg.Duration, "duration", bench.DefaultDuration, "timed bandwidth part of each contender and size, over all rounds; latency takes half of it on top")
	f.IntVar(&o.cfg.Rounds, "rounds", bench.DefaultRounds, "rounds, each of which measures everything")
	f.Var(&o.baselines, "baseline", "what to compare with: "+bench.BaselineNames()+", or none")
	f.Uint64Var(&o.cfg.Seed, "seed", 0, "seed of the pattern (default a random one, which is printed)")
	f.StringVar(&o.local, "local", "", "RoCE address to use, or two (default 127.0.0.1,127.0.0.2)")
	f.BoolVar(&o.cfg.InProcess, "in-process", false, "run the peer in this process")
	pinFlag(f, &o.cfg)
	f.StringVar(&jsonFile, "json-file", "", "write JSON to this file (go doc github.com/gohixl/hixl/bench.Report)")
	f.StringVar(&into, "into", "", "also replace the section \"compare\" of this document")
	f.StringVar(&plotFile, "plot", "", "write a self-contained HTML page with two charts to this file")
	return c
}
