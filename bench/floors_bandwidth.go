package bench

import "context"

// mib is the size of large messages.
const mib = 1 << 20

// against makes a goal's measurement of two sides.
func against(m metric, ours, theirs side) func(context.Context, *arena) (Measured, error) {
	return func(ctx context.Context, a *arena) (Measured, error) { return a.ratio(ctx, m, ours, theirs) }
}

// bandwidthGoals are about large messages.
var bandwidthGoals = []Goal{
	{
		Name: "write-16m", What: "WRITE 1 MiB over a 16 MiB region, one queue pair, against Go TCP", Floor: 0.60, Aim: 0.85,
		measure: against(byBandwidth, side{op: OpWrite, size: mib}, side{baseline: BaselineTCP, size: mib}),
	},
	{
		Name: "write-1m", What: "the same over a 1 MiB region", Floor: 0.75, Aim: 1.0,
		measure: against(byBandwidth, side{op: OpWrite, size: mib, region: mib}, side{baseline: BaselineTCP, size: mib, region: mib}),
	},
	{
		Name: "write-64k", What: "WRITE 64 KiB, 64 outstanding, against Go TCP with 64 KiB writes", Floor: 0.85, Aim: 1.2,
		measure: against(byBandwidth, side{op: OpWrite, size: 64 << 10, depth: 64}, side{baseline: BaselineTCP, size: 64 << 10}),
	},
	{
		Name: "write-shm", What: "WRITE 1 MiB against the shm ring, same region", Floor: 0.40, Aim: 0.55, needs: BaselineShm,
		measure: against(byBandwidth, side{op: OpWrite, size: mib}, side{baseline: BaselineShm, size: mib}),
	},
	{
		Name: "read-write", What: "READ 1 MiB against WRITE 1 MiB", Floor: 0.95, Aim: 1.0,
		measure: against(byBandwidth, side{op: OpRead, size: mib}, side{op: OpWrite, size: mib}),
	},
	{
		Name: "mtu-1024", What: "path MTU 1024 against 4096, WRITE 1 MiB", Floor: 0.9, Aim: 1.0,
		measure: against(byBandwidth, side{op: OpWrite, size: mib, mtu: 1024}, side{op: OpWrite, size: mib, mtu: 4096}),
	},
	{
		Name: "write-ucx", What: "WRITE 1 MiB against UCX-TCP put 1 MiB", Floor: 7, Aim: 10, needs: BaselineUCX,
		measure: against(byBandwidth, side{op: OpWrite, size: mib}, side{baseline: BaselineUCX, size: mib}),
	},
}
