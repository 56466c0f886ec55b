package hixl

import (
	"fmt"
	"time"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/peerlink"
	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/qp"
)

// PeerConfig says how a context treats its peers. The zero value is good; where 0
// means a default, [None] is 0 itself.
type PeerConfig struct {
	// QPs is how many queue pairs join two contexts, 1..16, default 2. All but
	// the first are made when there is work for them.
	QPs int
	// SendQueue is how many work requests are outstanding on each, 1..32,768,
	// default 256. What exceeds it waits in software.
	SendQueue int
	// MaxQueued bounds the work for one peer that waits in software, in pieces,
	// default 65,536. What exceeds it is refused with [ErrBusy].
	MaxQueued int
	// MaxPeers bounds the peers that are known, default 16,384; more are refused
	// with [ErrTooManyPeers].
	MaxPeers int
	// HighWater is how many peers that this side dialed stay connected, default
	// 4096, [None] without bound. Beyond it those that were not used for IdleAfter,
	// default 10 s, are disconnected, the longest unused first, until LowWater,
	// default three quarters of it, are left. They are connected again when they
	// are used.
	HighWater, LowWater int
	IdleAfter           time.Duration
	// KeepAlive is how long a peer may be silent before it is probed, default 5 s,
	// [None] for ever. A dead one is noticed after that and the time in which a queue
	// pair gives its peer up, see [ConnectOptions]. A peer that this side has not used
	// for so long gives back the memory that its queues have grown to; with None none
	// does.
	KeepAlive time.Duration
	// Notifications is how many notifications and immediates of one peer wait to be
	// taken, 1..1,048,576, default 4096. The peer is told and sends no more.
	Notifications int
	// FenceAfter is how long a canceled transfer may make no progress before its
	// connection is closed, default 200 ms, see [Handle.Cancel].
	FenceAfter time.Duration
	// Connect holds this side's choices for the queue pairs. The default
	// RNRRetries, without end, is what notifications rely on.
	Connect ConnectOptions
	// Coalesce says how unsignaled writes are gathered, see [Peer.Push].
	Coalesce CoalesceConfig
	// Recovery says what happens when a connection is lost.
	Recovery RecoveryConfig
	// Seed, if not 0, takes the place of randomness in the times of reconnecting
	// and in the context's [ContextID]: for simulations that replay, nothing else.
	Seed uint64
}

// RecoveryConfig says what happens when a connection is lost. The side that dialed
// dials again, after random pauses that grow.
type RecoveryConfig struct {
	// Off leaves a lost peer lost: its calls fail with [ErrPeerDown].
	Off bool
	// Min and Max bound the pauses, default 10 ms and 5 s.
	Min, Max time.Duration
	// GiveUp is how long work waits for the connection to come back, default 30 s,
	// [None] without end. After that calls fail with [ErrPeerDown] at once, until
	// it is back; attempts go on.
	GiveUp time.Duration
	// FollowRestarts lets named regions follow a peer into its next incarnation.
	// Else they are stale after a restart until [RemoteRegion.Refresh], since what
	// their memory held is gone.
	FollowRestarts bool
}

// Defaults of a PeerConfig.
const (
	DefaultPeerQPs       = 2
	DefaultPeerSendQueue = 256
	DefaultMaxQueued     = 1 << 16
	DefaultMaxPeers      = 1 << 14
	DefaultHighWater     = 4096
	DefaultIdleAfter     = 10 * time.Second
	DefaultKeepAlive     = 5 * time.Second
	DefaultNotifications = 4096
	DefaultBackOffMin    = 10 * time.Millisecond
	DefaultBackOffMax    = 5 * time.Second
	DefaultGiveUp        = 30 * time.Second
	DefaultFenceAfter    = 200 * time.Millisecond
)

// fill puts the defaults in and refuses what is out of range.
func (c *PeerConfig) fill() error {
	for _, f := range [...]struct {
		name          string
		v             *int
		def, low, top int
	}{
		{"QPs", &c.QPs, DefaultPeerQPs, 1, peerwire.MaxLanes},
		{"SendQueue", &c.SendQueue, DefaultPeerSendQueue, 1, qp.MaxWR},
		{"MaxQueued", &c.MaxQueued, DefaultMaxQueued, 1, 1 << 30},
		{"MaxPeers", &c.MaxPeers, DefaultMaxPeers, 1, 1 << 24},
		{"HighWater", &c.HighWater, DefaultHighWater, 0, 1 << 24},
		{"Notifications", &c.Notifications, DefaultNotifications, 1, 1 << 20},
	} {
		if *f.v = orDefault(*f.v, f.def); *f.v < f.low || *f.v > f.top {
			return &nic.ConfigError{Field: "PeerConfig." + f.name, Value: *f.v, Allowed: fmt.Sprintf("%d to %d", f.low, f.top)}
		}
	}
	for _, f := range [...]struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"IdleAfter", &c.IdleAfter, DefaultIdleAfter},
		{"KeepAlive", &c.KeepAlive, DefaultKeepAlive},
		{"FenceAfter", &c.FenceAfter, DefaultFenceAfter},
		{"Recovery.Min", &c.Recovery.Min, DefaultBackOffMin},
		{"Recovery.Max", &c.Recovery.Max, DefaultBackOffMax},
		{"Recovery.GiveUp", &c.Recovery.GiveUp, DefaultGiveUp},
	} {
		switch {
		case *f.v == 0:
			*f.v = f.def
		case *f.v == None:
			*f.v = 0
		case *f.v < 0:
			return &nic.ConfigError{Field: "PeerConfig." + f.name, Value: *f.v, Allowed: "0 for " + f.def.String() + ", more, or None"}
		}
	}
	if c.LowWater == 0 {
		c.LowWater = c.HighWater - c.HighWater/4
	}
	if c.LowWater < 0 || c.LowWater > c.HighWater {
		return &nic.ConfigError{Field: "PeerConfig.LowWater", Value: c.LowWater, Allowed: "1 to HighWater"}
	}
	if err := c.Coalesce.fill(); err != nil {
		return err
	}
	return c.Connect.check()
}

func (c *PeerConfig) link(passive bool) peerlink.Config {
	r := &c.Recovery
	return peerlink.Config{Min: r.Min, Max: max(r.Max, r.Min), GiveUp: r.GiveUp, Off: r.Off, Passive: passive}
}
