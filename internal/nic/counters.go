package nic

import (
	"fmt"
	"sync/atomic"

	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/transport"
)

// Drop is why a packet was not given to a queue pair (§1.13). All are silent on
// the wire.
type Drop uint8

// The reasons, in the order in which they are checked.
const (
	DropLength    Drop = iota // too short for its headers, or lengths contradict
	DropAddress               // not for our address
	DropOpcode                // nobody knows the opcode
	DropVersion               // another transport header version
	DropNoQP                  // no such queue pair
	DropTransport             // the queue pair is of another type
	DropState                 // the queue pair's state does not take it
	DropSource                // not from the queue pair's peer
	DropPKey                  // another partition
	DropICRC                  // wrong checksum, or an identification the peer never sends
	DropMemory                // the memory its queue pair writes to has fallen behind
	NumDrops
)

var dropNames = [NumDrops]string{
	"length", "address", "opcode", "version", "no such QP", "transport type", "QP state", "source address", "P_Key", "ICRC", "memory congested",
}

// String names the reason.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return fmt.Sprintf("drop %d", uint8(d))
}

// Stats counts what a NIC has seen. Packets, not trains, unless it says otherwise.
type Stats struct {
	RxPackets, RxBytes uint64 // given to queue pairs; bytes from BTH to ICRC
	TxPackets, TxBytes uint64 // handed to the transport
	TxTrains           uint64 // trains among them
	// Drops are the packets that did not reach a queue pair, by reason.
	Drops [NumDrops]uint64
	// SendErrors are packets that the transport refused: they count as lost.
	SendErrors uint64
	// Rewritten counts peers whose every packet fails its ICRC: something on the
	// way rewrites headers, address translation as a rule.
	Rewritten uint64
	// EventsLost are asynchronous events that nobody took in time.
	EventsLost uint64
	// QPs is the number of queue pairs now.
	QPs int
	// RC sums what the queue pairs' engines counted, closed ones included.
	RC rc.Stats
	// Transport is what the transport counted.
	Transport transport.Stats
	// Shards are the receive queues, by the low bits of the QPNs they are for.
	Shards []ShardStats
}

// ShardStats counts what came to one receive queue.
type ShardStats struct {
	RxPackets, RxBytes uint64 // given to queue pairs
	Dropped            uint64 // did not reach one, for any reason of a [Drop]
	// Overflow are packets that the queue, full, lost before the NIC saw them, and
	// Truncated datagrams that were larger than any that may come.
	Overflow, Truncated uint64
}

// addShard adds what a receiver counted.
func (s *Stats) addShard(r *receiver) {
	t := r.reader.Stats()
	sh := ShardStats{RxPackets: r.total.packets.Load(), RxBytes: r.total.bytes.Load(), Overflow: t.RxOverflow, Truncated: t.RxTruncated}
	for i := range s.Drops {
		n := r.total.drops[i].Load()
		s.Drops[i] += n
		sh.Dropped += n
	}
	s.RxPackets += sh.RxPackets
	s.RxBytes += sh.RxBytes
	s.Shards = append(s.Shards, sh)
}

// Dropped returns the sum of all drops.
func (s *Stats) Dropped() (n uint64) {
	for _, d := range s.Drops {
		n += d
	}
	return n
}

// counters are written by receivers and senders.
type counters struct {
	txPackets, txBytes, txTrains atomic.Uint64
	sendErrors, rewritten        atomic.Uint64
}

// rxTotal is what a receiver has counted.
type rxTotal struct {
	packets, bytes atomic.Uint64
	drops          [NumDrops]atomic.Uint64
}

// rxCounts gathers a batch's counts, so that the packets of one cost no atomics.
type rxCounts struct {
	packets, bytes uint64
	drops          [NumDrops]uint64
	dropped        bool
}

func (c *rxCounts) drop(d Drop) {
	c.drops[d]++
	c.dropped = true
}

// flush adds what was gathered to the totals.
func (c *rxCounts) flush(to *rxTotal) {
	to.packets.Add(c.packets)
	to.bytes.Add(c.bytes)
	if c.dropped {
		for i, n := range c.drops {
			to.drops[i].Add(n)
		}
	}
	*c = rxCounts{}
}

// addRC adds b to a.
func addRC(a *rc.Stats, b rc.Stats) {
	a.Requests += b.Requests
	a.Responses += b.Responses
	a.Retransmitted += b.Retransmitted
	a.Acknowledged += b.Acknowledged
	a.Timeouts += b.Timeouts
	a.EarlyTimeouts += b.EarlyTimeouts
	a.SeqNAKsReceived += b.SeqNAKsReceived
	a.RNRsReceived += b.RNRsReceived
	a.FatalNAKsReceived += b.FatalNAKsReceived
	a.SeqNAKsSent += b.SeqNAKsSent
	a.RNRsSent += b.RNRsSent
	a.FatalNAKsSent += b.FatalNAKsSent
	a.ImpliedNAKs += b.ImpliedNAKs
	a.Duplicates += b.Duplicates
	a.OutOfSequence += b.OutOfSequence
	a.StaleResponses += b.StaleResponses
	a.ReadsReplayed += b.ReadsReplayed
	a.AtomicsReplayed += b.AtomicsReplayed
	a.DroppedInError += b.DroppedInError
	a.DroppedOpcode += b.DroppedOpcode
	a.DroppedBusy += b.DroppedBusy
	a.CNPsReceived += b.CNPsReceived
	a.CNPsSent += b.CNPsSent
}
