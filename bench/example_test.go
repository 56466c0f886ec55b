package bench_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/bench"
)

// Measure 4 KiB WRITEs between two NICs of this process, without baselines.
func ExampleRun() {
	report, err := bench.Run(context.Background(), bench.Config{
		Ops: []bench.Op{bench.OpWrite}, Sizes: []int{4096}, Baselines: []bench.Baseline{},
		Duration: 20 * time.Millisecond, Rounds: 1, Region: 1 << 20, InProcess: true,
		Local: netip.MustParseAddr("127.98.9.1"), PeerLocal: netip.MustParseAddr("127.98.9.2"),
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Results {
		fmt.Println(r.Op, r.Size, "verified:", r.Verified, "moved something:", r.GBPerS > 0)
	}
	// Output: write 4096 verified: true moved something: true
}
