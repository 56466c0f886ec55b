package bench

import "time"

// usage is what a process has spent so far.
type usage struct {
	// CPU is user and system time of the process.
	CPU time.Duration `json:"cpu"`
	// Retransmits is the request packets that its NIC sent again.
	Retransmits uint64 `json:"retransmits"`
}

func (u usage) since(before usage) usage {
	return usage{CPU: u.CPU - before.CPU, Retransmits: u.Retransmits - before.Retransmits}
}

func (u usage) plus(v usage) usage {
	return usage{CPU: u.CPU + v.CPU, Retransmits: u.Retransmits + v.Retransmits}
}
