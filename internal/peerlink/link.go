package peerlink

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// State is where a connection is in its life.
type State uint8

// The states.
const (
	// Idle: there is no connection, and nobody needs one.
	Idle State = iota
	// Dialing: a connection is being made.
	Dialing
	// Up: it can be used.
	Up
	// Waiting: it is down, and it is not yet time for the next attempt; or it is
	// the other side's to dial.
	Waiting
	// Closed: for good.
	Closed
)

// Config is how a link deals with failure.
type Config struct {
	// Min and Max bound the time between attempts.
	Min, Max time.Duration
	// GiveUp is how long work may wait for a connection that was lost; 0 without
	// end. Attempts go on after that.
	GiveUp time.Duration
	// Off makes a lost connection stay lost.
	Off bool
	// Passive: the other side dials.
	Passive bool
}

// Link is the life of one connection. Init it before use.
type Link struct {
	cfg      Config
	state    State
	ever     bool      // it has been up
	attempts uint      // failed since it was up
	lost     mono.Time // when it was lost, 0 if it was not
	next     mono.Time // of the next attempt
	told     bool      // that it is given up
}

// Init sets an idle link up.
func (l *Link) Init(cfg Config) { *l = Link{cfg: cfg} }

// State returns the state.
func (l *Link) State() State { return l.state }

// Want says that somebody needs the connection; true asks for an attempt now.
func (l *Link) Want() (dial bool) {
	if l.state != Idle || l.cfg.Passive {
		return false
	}
	if l.ever && l.cfg.Off && !l.lost.IsZero() {
		return false
	}
	l.state = Dialing
	return true
}

// Connected says that the connection can be used.
func (l *Link) Connected() {
	if l.state != Closed {
		l.state, l.ever, l.attempts, l.lost, l.next, l.told = Up, true, 0, 0, 0, false
	}
}

// Failed says that the connection broke, or that an attempt came to nothing. One
// that was never up goes back to Idle: whoever wanted it is told. random chooses
// the time of the next attempt.
func (l *Link) Failed(now mono.Time, random uint64) {
	if l.state == Closed {
		return
	}
	if l.lost.IsZero() {
		l.lost = now
	}
	if !l.ever || l.cfg.Off {
		l.state = Idle
		return
	}
	l.state = Waiting
	if !l.cfg.Passive {
		l.next = now.Add(l.pause(random))
		l.attempts++
	}
}

// pause is a random time up to Min, twice Min and so on up to Max, after at least
// half of it: peers that were lost together must not come back together.
func (l *Link) pause(random uint64) time.Duration {
	d := l.cfg.Max
	if shift := l.attempts; shift < 32 && l.cfg.Min<<shift < l.cfg.Max && l.cfg.Min<<shift > 0 {
		d = l.cfg.Min << shift
	}
	half := d / 2
	return half + time.Duration(random%uint64(half+1))
}

// Rest says that the connection was ended in order, to be made again when
// somebody needs it.
func (l *Link) Rest() {
	if l.state != Closed {
		l.state, l.lost, l.next, l.attempts, l.told = Idle, 0, 0, 0, false
	}
}

// Close ends the link.
func (l *Link) Close() { l.state, l.next = Closed, 0 }

// Expire says what the time asks for: another attempt, and once, that work waits
// no longer.
func (l *Link) Expire(now mono.Time) (dial, gaveUp bool) {
	if at := l.givesUp(); !at.IsZero() && !now.Before(at) {
		l.told, gaveUp = true, true
	}
	if l.state == Waiting && !l.next.IsZero() && !now.Before(l.next) {
		l.state, l.next, dial = Dialing, 0, true
	}
	return dial, gaveUp
}

// givesUp is when work waits no longer, 0 if it does not wait or that was told.
func (l *Link) givesUp() mono.Time {
	if l.lost.IsZero() || l.cfg.GiveUp == 0 || l.told || l.state == Closed || l.state == Up {
		return 0
	}
	return l.lost.Add(l.cfg.GiveUp)
}

// Deadline returns when Expire wants to be called; 0 is never.
func (l *Link) Deadline() mono.Time { return mono.Earliest(l.next, l.givesUp()) }

// Patient reports whether work may wait for the connection.
func (l *Link) Patient(now mono.Time) bool {
	switch {
	case l.state == Up:
		return true
	case l.state == Closed:
		return false
	case l.lost.IsZero():
		return l.state == Dialing
	case l.cfg.Off || !l.ever && l.state == Idle:
		return false
	}
	return l.cfg.GiveUp == 0 || now.Before(l.lost.Add(l.cfg.GiveUp))
}
