package cm

// Stats counts what an agent has seen and done since it was made.
type Stats struct {
	// Received and Sent count MADs by [Attribute], less [AttrREQ]. Resent are
	// those of Sent that went out again, by a timer or for a duplicate.
	Received, Sent [AttrAPR - AttrREQ + 1]uint64
	Resent         uint64
	// Malformed MADs were no messages of connection management.
	Malformed uint64
	// Ignored MADs named nothing that is known, came from another address than
	// the connection's peer, or did not fit the state.
	Ignored uint64
	// Duplicates were recognised as such, answered or not.
	Duplicates uint64
	// Refused requests were answered with a REJ or SIDR status by the agent
	// itself; RefusedLimit are those of them that met a limit of [Config].
	Refused, RefusedLimit uint64
	// Stale connections were ended because their peer has a newer one on the
	// same queue pair.
	Stale uint64
	// Unsent MADs were dropped because nobody took the queue's contents.
	Unsent uint64
}

// Usage is what an agent holds at the moment.
type Usage struct {
	Connections int // those below included
	HalfOpen    int // passive, not established
	Timewait    int
	SIDR        int // asked, to be answered, or answers remembered
	Timers      int
	Listeners   int
}

// Stats returns the counters.
func (a *Agent) Stats() Stats { return a.stats }

// Usage returns the sizes of the tables.
func (a *Agent) Usage() Usage {
	u := Usage{
		Connections: len(a.conns), HalfOpen: a.halfOpen, SIDR: len(a.sidrs),
		Timers: len(a.timers.heap), Listeners: len(a.listeners),
	}
	for _, c := range a.conns {
		if c.state == StateTimewait {
			u.Timewait++
		}
	}
	return u
}
