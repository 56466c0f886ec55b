package nic

import "github.com/gohixl/hixl/transport"

// fewPorts reports whether a transport spreads packets over only some source ports.
func fewPorts(c transport.Conn) bool {
	const base, some = 0xc000, 16
	for port := uint16(base); port < base+some; port++ {
		if c.SourcePort(port) != port {
			return true
		}
	}
	return false
}

// byShard puts queue pairs next to each other whose packets can share a train, by
// the shard of their peer, which chooses the source port too. Otherwise their order
// stays.
func (r *receiver) byShard(qs []*Queue) {
	if len(qs) < 3 || !r.nic.fewPorts {
		return
	}
	out := r.sorted[:0]
	for shard := range shardMask + 1 {
		for _, q := range qs {
			if int(q.View().DestQPN)&shardMask == shard {
				out = append(out, q)
			}
		}
	}
	copy(qs, out)
	clear(out)
	r.sorted = out[:0]
}
