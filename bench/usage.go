package bench

import "time"

// usage is what has been spent so far.
type usage struct {
	// CPU is user and system time.
	CPU time.Duration `json:"cpu"`
	// Retransmits is the packets that a cell's queue pairs sent again.
	Retransmits uint64 `json:"retransmits"`
}
