package rc

// Stats counts what a connection has seen. A connection touches no log: this is
// how it tells.
type Stats struct {
	// Requests and Responses are packets sent; Retransmitted is the part of
	// the requests that had been sent before.
	Requests, Responses, Retransmitted uint64
	// Acknowledged is the PSNs of our requests that were acknowledged, those of READs
	// with each response that was taken. It moves only when the connection does,
	// whatever is sent and comes in vain.
	Acknowledged uint64
	// Timeouts are expiries of the retransmission timer, EarlyTimeouts those
	// of the shorter one that the measured round trip gives.
	Timeouts, EarlyTimeouts uint64
	// NAK and RNR counters, of each half.
	SeqNAKsReceived, RNRsReceived, FatalNAKsReceived uint64
	SeqNAKsSent, RNRsSent, FatalNAKsSent             uint64
	ImpliedNAKs                                      uint64
	// Duplicates are requests seen again, OutOfSequence those beyond a gap.
	Duplicates, OutOfSequence, StaleResponses uint64
	// ReadsReplayed and AtomicsReplayed are duplicates answered again.
	ReadsReplayed, AtomicsReplayed uint64
	// DroppedInError, DroppedOpcode and DroppedBusy are packets ignored: in the
	// error state, of no use to RC, and beyond the bound on placements.
	DroppedInError, DroppedOpcode, DroppedBusy uint64
	CNPsReceived, CNPsSent                     uint64
	// CreditsSeen is the newest credit count of an ACK, -1 for unlimited; it is
	// advisory (§3.6).
	CreditsSeen int
}

// Stats returns the counters.
func (c *RC) Stats() Stats { return c.common.stats }
