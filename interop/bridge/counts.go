package bridge

import "fmt"

// Counts tell what came in by a port and what became of it, in frames.
type Counts struct {
	Frames                                 uint64 // all that came in
	RoCE                                   uint64 // of them, RoCE packets
	Lost, Duplicated, Reordered, Corrupted uint64 // by chance
	Ruled                                  uint64 // lost by a rule
	Overflow, Refused                      uint64 // not delivered to this port: its queue was full, or it failed
}

// Faults is how many faults were made.
func (c Counts) Faults() uint64 { return c.Lost + c.Duplicated + c.Reordered + c.Corrupted + c.Ruled }

// Add returns the sums.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Frames + d.Frames, c.RoCE + d.RoCE, c.Lost + d.Lost, c.Duplicated + d.Duplicated, c.Reordered + d.Reordered,
		c.Corrupted + d.Corrupted, c.Ruled + d.Ruled, c.Overflow + d.Overflow, c.Refused + d.Refused,
	}
}

// String names the counts that are not zero, after the number of RoCE packets.
func (c Counts) String() string {
	s := fmt.Sprintf("%d packets", c.RoCE)
	for _, f := range [...]struct {
		n    uint64
		name string
	}{
		{c.Lost, "lost"},
		{c.Duplicated, "duplicated"},
		{c.Reordered, "reordered"},
		{c.Corrupted, "corrupted"},
		{c.Ruled, "dropped by rule"},
		{c.Overflow, "overflowed"},
		{c.Refused, "refused"},
	} {
		if f.n != 0 {
			s += fmt.Sprintf(", %d %s", f.n, f.name)
		}
	}
	return s
}

// Counts returns the counts of each port by name, since the last Reset.
func (s *Switch) Counts() map[string]Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Counts, len(s.ports))
	for _, p := range s.ports {
		all[p.name] = p.counts
	}
	return all
}

// Total returns the sums of all ports.
func (s *Switch) Total() (t Counts) {
	for _, c := range s.Counts() {
		t = t.Add(c)
	}
	return t
}

// Reset ends all faults and rules and zeroes the counts.
func (s *Switch) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
	for _, p := range s.ports {
		p.faults.flush(s)
		p.faults.set(Faults{})
		p.counts = Counts{}
	}
}
