package bench

import "time"

// Round is the timed bandwidth part of one round, with what was spent and met in it
// on both sides.
type Round struct {
	GBPerS      float64       `json:"gb_per_s"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	CPUPerGB    float64       `json:"cpu_s_per_gb"`
	Retransmits uint64        `json:"retransmits"`
	// Packets are those of both sides, acknowledgements as well, and Trains the
	// trains among them.
	Packets uint64 `json:"packets"`
	Trains  uint64 `json:"trains"`
	Causes
	Strain
}

func (s sample) round() Round {
	return Round{
		GBPerS: s.gbPerS(), Elapsed: s.elapsed, CPUPerGB: s.cpuPerGB(), Retransmits: s.spent.Retransmits,
		Packets: s.spent.Packets, Trains: s.spent.Trains, Causes: s.spent.Causes, Strain: s.spent.Strain,
	}
}

// rounds are all of a series that had a bandwidth part.
func (s *series) rounds() (out []Round) {
	for _, x := range s.samples {
		if x.elapsed > 0 {
			out = append(out, x.round())
		}
	}
	return out
}

// disturbed reports whether threads waited for a processor for more than a tenth of
// the time: others had it. That says something of who never sleeps, as our side does
// while it moves data; who sleeps and is woken waits by that alone.
func (r *Round) disturbed() bool { return r.Waited > r.Elapsed/10 }
