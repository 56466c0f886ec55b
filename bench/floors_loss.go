package bench

// lossGoals are about packets lost at random, in both directions. The two sides
// run in sessions of their own.
var lossGoals = []Goal{
	{
		Name: "loss-0.1", What: "WRITE 1 MiB at 0.1 % random loss against no loss", Floor: 0.6, Aim: 0.9,
		measure: against(byBandwidth, side{op: OpWrite, size: mib, faults: Faults{Loss: 0.001}}, side{op: OpWrite, size: mib}),
	},
	{
		Name: "loss-1", What: "WRITE 1 MiB at 1 % random loss against no loss", Floor: 0.2, Aim: 0.6,
		measure: against(byBandwidth, side{op: OpWrite, size: mib, faults: Faults{Loss: 0.01}}, side{op: OpWrite, size: mib}),
	},
}
