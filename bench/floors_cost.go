package bench

import "context"

// costGoals are about what an operation takes besides time.
var costGoals = []Goal{
	{
		Name: "cpu-tcp", What: "CPU seconds per GB, WRITE 1 MiB, against Go TCP", Floor: 1.6, Aim: 1.2, AtMost: true,
		measure: against(byCPU, side{op: OpWrite, size: mib}, side{baseline: BaselineTCP, size: mib}),
	},
	{
		Name: "allocs", What: "objects allocated an operation, WRITE 64 B, both processes, to two places", AtMost: true, Unit: "objects",
		measure: allocationsOf(side{op: OpWrite, size: 64}),
	},
	{
		Name: "allocs-packet", What: "objects allocated a packet, WRITE 1 MiB of 256 packets, both processes, to two places", AtMost: true, Unit: "objects",
		measure: allocationsOf(side{op: OpWrite, size: mib, mtu: 4096}),
	},
}

// allocationsOf measures how many objects are allocated a packet. What happens as
// time passes, however many packets go, is a small fraction of one and rounds to
// nothing.
func allocationsOf(what side) func(context.Context, *arena) (Measured, error) {
	return func(ctx context.Context, a *arena) (Measured, error) {
		s, ctx, err := a.session(ctx, &what)
		if err != nil {
			return Measured{}, err
		}
		c := a.contender(s, &what, a.budget(byBandwidth))
		for n := range a.cfg.Rounds {
			if err := c.round(ctx, n); err != nil {
				return Measured{}, explain(ctx, err)
			}
		}
		packets := 1
		if what.mtu > 0 {
			packets = what.size / what.mtu
		}
		return found(each(c.series.samples, func(x sample) float64 {
			return float64(int(100*per(float64(x.mallocs), float64(x.messages)*float64(packets)))) / 100
		})), c.shut(ctx)
	}
}
