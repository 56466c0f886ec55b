package bench

import (
	"time"

	"github.com/gohixl/hixl"
)

// usage is what has been spent so far.
type usage struct {
	// CPU is user and system time.
	CPU time.Duration `json:"cpu"`
	// Mallocs is the objects that the process has allocated.
	Mallocs uint64 `json:"mallocs"`
	// Retransmits is the packets that a cell's queue pairs sent again.
	Retransmits uint64 `json:"retransmits"`
	// Packets are those that the NICs handed to their transports, Trains the trains
	// among them.
	Packets uint64 `json:"packets"`
	Trains  uint64 `json:"trains"`
	Causes
	Strain
}

func (u usage) add(v usage) usage {
	return usage{
		CPU: u.CPU + v.CPU, Mallocs: u.Mallocs + v.Mallocs, Retransmits: u.Retransmits + v.Retransmits,
		Packets: u.Packets + v.Packets, Trains: u.Trains + v.Trains, Causes: u.Causes.add(v.Causes), Strain: u.Strain.add(v.Strain),
	}
}

// since is what came after v.
func (u usage) since(v usage) usage {
	return usage{
		CPU: u.CPU - v.CPU, Mallocs: u.Mallocs - v.Mallocs, Retransmits: u.Retransmits - v.Retransmits,
		Packets: u.Packets - v.Packets, Trains: u.Trains - v.Trains, Causes: u.Causes.since(v.Causes), Strain: u.Strain.since(v.Strain),
	}
}

// Causes are what makes packets be sent again, counted on both sides. One
// cause can repeat many packets.
type Causes struct {
	// RNRNAKs are messages refused because no receive was posted.
	RNRNAKs uint64 `json:"rnr_naks"`
	// SeqNAKs are gaps that the receiving side saw, in requests or in the
	// responses of READs.
	SeqNAKs uint64 `json:"seq_naks"`
	// Timeouts are waits for an answer that did not come, the early ones that the
	// measured round trip gives among them.
	Timeouts uint64 `json:"timeouts"`
	// RxOverflow is packets that a kernel dropped at a socket's full receive
	// buffer.
	RxOverflow uint64 `json:"rx_overflow"`
}

func (c Causes) add(d Causes) Causes {
	return Causes{c.RNRNAKs + d.RNRNAKs, c.SeqNAKs + d.SeqNAKs, c.Timeouts + d.Timeouts, c.RxOverflow + d.RxOverflow}
}

func (c Causes) since(d Causes) Causes {
	return Causes{c.RNRNAKs - d.RNRNAKs, c.SeqNAKs - d.SeqNAKs, c.Timeouts - d.Timeouts, c.RxOverflow - d.RxOverflow}
}

// causes picks them from a NIC's counters: each NAK where it arrives, since only
// there does it have an effect.
func causes(s *hixl.Stats) Causes {
	return Causes{
		RNRNAKs: s.RC.RNRsReceived, SeqNAKs: s.RC.SeqNAKsReceived + s.RC.ImpliedNAKs,
		Timeouts: s.RC.Timeouts + s.RC.EarlyTimeouts, RxOverflow: s.Transport.RxOverflow,
	}
}
