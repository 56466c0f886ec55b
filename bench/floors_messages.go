package bench

// messageGoals are about many small messages.
var messageGoals = []Goal{{
	Name: "lists-ucx", What: "64 B WRITEs posted in lists of 64, messages/s against UCX-TCP put", Floor: 8, Aim: 15, needs: BaselineUCX,
	measure: against(byMessages, side{op: OpWrite, size: 64, depth: 1024, list: 64}, side{baseline: BaselineUCX, size: 64}),
}}
