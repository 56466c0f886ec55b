package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/bench"
)

// floorsCommand measures the goals of the datapath.
func floorsCommand() *cobra.Command {
	var (
		cfg            bench.Config
		local, into    string
		json, md, list bool
	)
	c := &cobra.Command{
		Use:   "floors [name...]",
		Short: "Measure what the datapath is held to, a line a goal",
		Long: `floors measures, goal by goal, the figures that the datapath is held to: ours and
what it is compared with in turns, in two processes, every byte of ours, tcp, shm and
memcpy verified outside the timed part. Names choose goals; one that ends in "-" stands for all that begin
so. Without any, all are measured, which takes some minutes.`,
		Example: `  hixl-bench floors
  hixl-bench floors write-1m latency-
  hixl-bench floors --list`,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, names []string) error {
			goals, err := bench.GoalsNamed(names)
			if err != nil {
				return err
			}
			if list {
				return listGoals(c.OutOrStdout(), goals)
			}
			if cfg.Local, cfg.PeerLocal, err = parseLocal(local); err != nil {
				return err
			}
			if into != "" && len(names) > 0 {
				return &bench.FlagError{Flag: "into", Given: into + " with names of goals", Allowed: "all goals", Do: "leave the names out, or print --markdown"}
			}
			if err := checkSection(into, "floors"); err != nil {
				return err
			}
			r, err := bench.RunGoals(c.Context(), cfg, goals, bench.ProgressBar(os.Stderr))
			if r == nil {
				return err
			}
			if err == nil {
				err = updateSection(into, "floors", r.WriteMarkdown)
			}
			write := r.WriteTable
			switch {
			case json:
				write = r.WriteJSON
			case md:
				write = r.WriteMarkdown
			}
			return errors.Join(err, write(c.OutOrStdout())) // both when it was interrupted
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&cfg.Rounds, "rounds", bench.DefaultGoalRounds, "rounds, each of which measures both sides")
	f.IntVar(&cfg.Passes, "passes", 1, "passes through all goals; each has to reach a goal, and the verdict names their medians")
	f.DurationVar(&cfg.Duration, "duration", bench.DefaultGoalDuration, "timed part of each side, over all rounds")
	f.BoolVar(&json, "json", false, "print one JSON object (go doc github.com/gohixl/hixl/bench.GoalsReport)")
	f.BoolVar(&md, "markdown", false, "print a table for a document")
	f.StringVar(&into, "into", "", "also replace the section \"floors\" of this document")
	f.BoolVar(&list, "list", false, "name the goals and measure nothing")
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of pattern and faults (default a random one, which is printed)")
	f.StringVar(&local, "local", "", "first RoCE address; each pair of NICs takes the next two (default 127.0.0.1)")
	f.BoolVar(&cfg.InProcess, "in-process", false, "run the peers in this process")
	pinFlag(f, &cfg)
	c.MarkFlagsMutuallyExclusive("json", "markdown", "list")
	return c
}

// listGoals names goals.
func listGoals(out io.Writer, goals []bench.Goal) error {
	for _, g := range goals {
		if _, err := fmt.Fprintf(out, "%-16s %s\n", g.Name, g.What); err != nil {
			return err
		}
	}
	return nil
}
