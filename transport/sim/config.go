package sim

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Defaults and limits of Config and Link.
const (
	// DefaultMTU leaves room for a 4096-byte path MTU (4096 + 96, §1.12).
	DefaultMTU = 4200
	// MaxMTU is the largest IP packet.
	MaxMTU = 65535
	// DefaultRecvQueue bounds a host's receive queue, in bytes of UDP payload.
	DefaultRecvQueue = 4 << 20
	// Start is the virtual time at which a network begins.
	Start = mono.Time(time.Second)
)

// Link says what happens to packets in one direction between two hosts. The zero
// value is a perfect link of no delay. Probabilities are taken into 0..1,
// negative durations and sizes count as 0.
type Link struct {
	// Delay is the time from send to arrival.
	Delay time.Duration
	// Jitter adds up to this much, evenly distributed, without reordering.
	Jitter time.Duration
	// Loss is the probability that a packet vanishes.
	Loss float64
	// Duplicate is the probability that a packet arrives twice. The copies meet
	// their own faults and delays.
	Duplicate float64
	// Reorder is the probability that a packet is held back, by up to ReorderBy.
	Reorder float64
	// ReorderBy is 2·(Delay+Jitter) + 10 µs when 0.
	ReorderBy time.Duration
	// Corrupt is the probability that one bit of the IP packet is flipped,
	// anywhere from the first header byte to the last of the ICRC. The IP header
	// checksum is taken as repaired on the way (the router that broke the header
	// wrote it); lengths never lie to the receiver: such packets are dropped.
	Corrupt float64
	// MTU is the largest IP packet; larger ones are dropped and counted. In Config
	// it is DefaultMTU when 0 and at most MaxMTU; a link set later has at most
	// what Config has, and the same when 0.
	MTU int
	// Rate is in bits per second of IP packets; 0 means no limit.
	Rate int64
	// QueueBytes bounds what waits for a link with a Rate; 0 means 1 MiB.
	QueueBytes int
	// MarkBytes is the queue above which an ECN-capable packet is marked CE
	// instead of passing unmarked; 0 means never.
	MarkBytes int
}

// Config describes a network. The zero value is a perfect one.
type Config struct {
	// Seed makes all random choices; equal seeds give equal runs.
	Seed uint64
	// Link is how any two hosts are joined unless SetLink says otherwise.
	Link
	// RecvQueue bounds each host's receive queue in bytes of UDP payload,
	// DefaultRecvQueue when 0. What does not fit is dropped and counted.
	RecvQueue int
	// HideHeaders makes hosts see what a UDP socket shows: no identification,
	// flags or TTL.
	HideHeaders bool
	// Trains is how many packets a train may have, 0 for no trains. Packet i
	// leaves with identification i; trains arrive as single packets.
	Trains int
}

func (c Config) fill() Config {
	c.Link = c.Link.fill()
	if c.RecvQueue <= 0 {
		c.RecvQueue = DefaultRecvQueue
	}
	return c
}

func (l Link) fill() Link {
	for _, p := range []*float64{&l.Loss, &l.Duplicate, &l.Reorder, &l.Corrupt} {
		*p = min(max(*p, 0), 1)
	}
	for _, d := range []*time.Duration{&l.Delay, &l.Jitter, &l.ReorderBy} {
		*d = max(*d, 0)
	}
	if l.ReorderBy == 0 {
		l.ReorderBy = 2*(l.Delay+l.Jitter) + 10*time.Microsecond
	}
	if l.MTU <= 0 {
		l.MTU = DefaultMTU
	}
	l.MTU = min(l.MTU, MaxMTU)
	l.Rate = max(l.Rate, 0)
	if l.QueueBytes <= 0 {
		l.QueueBytes = 1 << 20
	}
	l.MarkBytes = max(l.MarkBytes, 0)
	return l
}
