package bench

import "fmt"

// latencyGoals are about one small message at a time. One way is half of what a
// caller waits: of post to completion, of a message and its answer. Our NICs are in
// their latency mode at both ends.
var latencyGoals = append(smallLatencyGoals(), Goal{
	Name: "faa-write", What: "FETCH_ADD latency against WRITE latency, 8 B", Floor: 1.2, Aim: 1.05, AtMost: true,
	measure: against(byLatency, side{op: OpFAA, size: atomicSize, lowLatency: true}, side{op: OpWrite, size: atomicSize, lowLatency: true}),
})

func smallLatencyGoals() (out []Goal) {
	for _, against1 := range []struct {
		name, what string
		baseline   Baseline
		floor, aim float64
	}{
		{"tcp", "Go TCP one way", BaselineTCP, 0.55, 0.40},
		{"ucx", "UCX-TCP put latency", BaselineUCX, 0.40, 0.27},
	} {
		for _, size := range []int{8, 64} {
			g := Goal{
				Name:  fmt.Sprintf("latency-%s-%d", against1.name, size),
				What:  fmt.Sprintf("WRITE %d B latency, half of post to completion, against %s", size, against1.what),
				Floor: against1.floor, Aim: against1.aim, AtMost: true,
				measure: against(byLatency, side{op: OpWrite, size: size, lowLatency: true}, side{baseline: against1.baseline, size: size, lowLatency: true}),
			}
			if against1.baseline.kind().program != nil {
				g.needs = against1.baseline
			}
			out = append(out, g)
		}
	}
	return out
}
