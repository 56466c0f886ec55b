package main

import (
	"github.com/spf13/cobra"

	"github.com/gohixl/hixl/bench"
)

// opList is a list of operations, or the one word that stands for a comparison of
// its own.
type opList struct {
	bench.OpList
	coalesce bool
}

// Set reads the list.
func (l *opList) Set(s string) error {
	if l.coalesce = s == bench.Coalesce; l.coalesce {
		l.OpList = nil
		return nil
	}
	return l.OpList.Set(s)
}

// String writes it.
func (l *opList) String() string {
	if l.coalesce {
		return bench.Coalesce
	}
	return l.OpList.String()
}

// coalesce is --op coalesce.
func (o *options) coalesce(c *cobra.Command, cfg bench.Config) error {
	for _, f := range []string{"size", "qps", "depth", "mtu", "region", "baseline", "csv", "loss", "reorder", "duplicate", "corrupt", "peer", "netns", "transport", "no-trains", "shards", "low-latency"} {
		if c.Flags().Changed(f) {
			return &bench.FlagError{Flag: f, Given: "with --op coalesce", Allowed: "--duration, --rounds, --seed, --local and --json", Do: "leave it out"}
		}
	}
	rep, err := bench.RunCoalesce(c.Context(), cfg)
	if err != nil {
		return err
	}
	if o.json {
		return rep.WriteJSON(c.OutOrStdout())
	}
	return rep.WriteTable(c.OutOrStdout())
}
