package hixl

import "sync/atomic"

// contextCounts are a context's counters.
type contextCounts struct {
	coalesced, coalescedPosts atomic.Uint64
	reconnects, restarts      atomic.Uint64
	probes, evictions         atomic.Uint64
	regionHits, regionMisses  atomic.Uint64
	transfers, failed         atomic.Uint64
	notifications             atomic.Uint64
}

// ContextStats counts what a context has done.
type ContextStats struct {
	// Peers are known, Connected of them connected.
	Peers, Connected int
	// Transfers were begun, Failed of them failed.
	Transfers, Failed uint64
	// Coalesced unsignaled writes were gathered, into CoalescedPosts work requests.
	Coalesced, CoalescedPosts uint64
	// Reconnects are connections after the first of a peer, Restarts those to
	// another incarnation of it, Probes looks at silent peers.
	Reconnects, Restarts, Probes uint64
	// RegionHits and RegionMisses are what [Context.Cached] has found, and had to
	// register.
	RegionHits, RegionMisses uint64
	// Evictions are idle peers that were disconnected.
	Evictions uint64
	// Notifications have arrived, immediates included.
	Notifications uint64
}

// Stats returns the counters.
func (c *Context) Stats() ContextStats {
	n := &c.counts
	s := ContextStats{
		Transfers: n.transfers.Load(), Failed: n.failed.Load(), Coalesced: n.coalesced.Load(), CoalescedPosts: n.coalescedPosts.Load(),
		Reconnects: n.reconnects.Load(), Restarts: n.restarts.Load(), Probes: n.probes.Load(), Evictions: n.evictions.Load(),
		RegionHits: n.regionHits.Load(), RegionMisses: n.regionMisses.Load(), Notifications: n.notifications.Load(),
	}
	c.mu.Lock()
	s.Peers = len(c.dialed) + len(c.sessions)
	c.mu.Unlock()
	s.Connected = int(c.up.Load())
	return s
}
