package bench

import "time"

// Strain is what the system did with the processes that take part, all their
// threads together. It tells a round that was slowed down from outside from one that
// was slow by itself.
type Strain struct {
	// MinorFaults and MajorFaults are accesses to memory that was not mapped, and to
	// such that had to be read from a disk.
	MinorFaults uint64 `json:"minor_faults"`
	MajorFaults uint64 `json:"major_faults"`
	// Switches are times that a thread gave its processor away, Preempted those that
	// it lost it.
	Switches  uint64 `json:"switches"`
	Preempted uint64 `json:"preempted"`
	// Waited is how long threads could have run and had no processor; 0 where the
	// system does not tell (all but Linux).
	Waited time.Duration `json:"waited_ns"`
}

func (s Strain) add(t Strain) Strain {
	return Strain{s.MinorFaults + t.MinorFaults, s.MajorFaults + t.MajorFaults, s.Switches + t.Switches, s.Preempted + t.Preempted, s.Waited + t.Waited}
}

func (s Strain) since(t Strain) Strain {
	return Strain{s.MinorFaults - t.MinorFaults, s.MajorFaults - t.MajorFaults, s.Switches - t.Switches, s.Preempted - t.Preempted, s.Waited - t.Waited}
}
