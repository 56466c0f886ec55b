package peerlink

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Pulse says when a silent peer is to be probed: when a whole period has passed in
// which nothing showed that it is alive. A peer that is busy costs one look a
// period and no probe.
type Pulse struct {
	period time.Duration // 0: never
	at     mono.Time
	seen   uint64
}

// Start begins to watch, with the count of signs of life so far.
func (p *Pulse) Start(now mono.Time, period time.Duration, signs uint64) {
	*p = Pulse{period: period, seen: signs}
	if period > 0 {
		p.at = now.Add(period)
	}
}

// Stop ends it.
func (p *Pulse) Stop() { p.at = 0 }

// Deadline returns when Expire wants to be called; 0 is never.
func (p *Pulse) Deadline() mono.Time { return p.at }

// Expire reports whether to probe: its time has come, and there has been no sign
// of life since the last look.
func (p *Pulse) Expire(now mono.Time, signs uint64) (probe bool) {
	if p.at.IsZero() || now.Before(p.at) {
		return false
	}
	probe = signs == p.seen
	p.at, p.seen = now.Add(p.period), signs
	return probe
}
