package syncproto

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// The lock's word is a version, which each change increments, and a bit that says
// whether it is held.
const heldBit = 1

// taken, renewed and freed are the words that follow w.
func taken(w uint64) uint64   { return (w|heldBit)&^heldBit + 2 | heldBit }
func renewed(w uint64) uint64 { return w + 2 }
func freed(w uint64) uint64   { return w + 1 }

// Token is the fencing token of whoever made w by taking the lock.
func Token(w uint64) uint64 { return w >> 1 }

// LockConfig is what a lock's users agree about, and how one of them behaves.
type LockConfig struct {
	Off uint64 // of the lock's word
	// Lease is how long a word must have been unchanged before a contender takes
	// the lock away; Margin is how much earlier its holder stops.
	Lease, Margin time.Duration
	// MinPause and MaxPause bound the time between two looks of a contender.
	MinPause, MaxPause time.Duration
}

type lockPhase uint8

const (
	lockIdle lockPhase = iota
	lockWatching
	lockPausing
	lockTaking
	lockHolding
	lockRenewing
	lockReleasing
	lockRefused
	lockLost
)

// Lock is one user of a lock with a lease.
type Lock struct {
	cfg   LockConfig
	phase lockPhase
	try   bool

	// Of a contender: the word as it was last seen, since when, and how to wait.
	known bool
	seen  uint64
	since mono.Time
	pause time.Duration
	at    mono.Time

	// Of a holder: its word, and until when nobody can have taken the lock away.
	word  uint64
	token uint64
	until mono.Time
	// A renewal that may have taken effect, begun at; a release that may have.
	doubt      bool
	doubtFrom  mono.Time
	maybeFreed bool

	began mono.Time // of the operation at work
}

// NewLock returns a user who does not hold the lock.
func NewLock(cfg LockConfig) Lock { return Lock{cfg: cfg} }

// Acquire begins to acquire the lock, if the user is at rest without it. With try
// one that somebody holds, or may hold, is not waited for.
func (l *Lock) Acquire(try bool) {
	l.try, l.phase, l.pause = try, lockWatching, l.cfg.MinPause
}

// Renew begins to renew the lease.
func (l *Lock) Renew(now mono.Time) {
	switch {
	case l.phase != lockHolding && l.phase != lockRenewing:
	case now < l.until:
		l.phase = lockRenewing
	default:
		l.end(lockLost)
	}
}

// Release begins to give the lock back. From here on it is not held.
func (l *Lock) Release() {
	if l.phase == lockHolding || l.phase == lockRenewing {
		l.phase = lockReleasing
	}
}

// Rest ends what was begun and leaves it to the lease: the user does not hold the
// lock, though its word may say so for a while.
func (l *Lock) Rest() { l.phase = lockIdle }

// Held reports whether the lock is held at a time.
func (l *Lock) Held(now mono.Time) bool {
	return (l.phase == lockHolding || l.phase == lockRenewing) && now < l.until
}

// Lost reports whether the lock was held and somebody else may hold it now;
// Refused, whether a try has found it held.
func (l *Lock) Lost() bool { return l.phase == lockLost }

// Refused reports whether a try has found the lock held.
func (l *Lock) Refused() bool { return l.phase == lockRefused }

// Token is the fencing token, while it is held.
func (l *Lock) Token() uint64 { return l.token }

// Until is when the lock is not held any more, unless it is renewed.
func (l *Lock) Until() mono.Time { return l.until }

// Next implements [Machine].
func (l *Lock) Next(now mono.Time) Op {
	l.began = now
	switch l.phase {
	case lockPausing:
		if now < l.at {
			return Op{Kind: Pause, At: l.at}
		}
		l.phase = lockWatching
		fallthrough
	case lockWatching:
		return Op{Kind: Load, Off: l.cfg.Off}
	case lockTaking:
		return l.swap(l.seen, taken(l.seen))
	case lockRenewing:
		return l.swap(l.word, renewed(l.word))
	case lockReleasing:
		return l.swap(l.word, freed(l.word))
	default:
		return Op{}
	}
}

func (l *Lock) swap(from, to uint64) Op {
	return Op{Kind: CompareSwap, Off: l.cfg.Off, Compare: from, Operand: to}
}

// Done implements [Machine].
func (l *Lock) Done(now mono.Time, r Result) {
	switch l.phase {
	case lockWatching:
		l.observe(now, r.Word)
	case lockTaking:
		if r.Word != l.seen {
			l.observe(now, r.Word)
			return
		}
		l.took(now)
	case lockRenewing:
		l.wasRenewed(now, r.Word)
	case lockReleasing:
		l.wasReleased(now, r.Word)
	default:
	}
}

// observe is a contender's look at the word.
func (l *Lock) observe(now mono.Time, word uint64) {
	if !l.known || word != l.seen {
		l.known, l.seen, l.since, l.pause = true, word, now, l.cfg.MinPause
	}
	switch {
	case word&heldBit == 0, now.Sub(l.since) >= l.cfg.Lease:
		l.phase = lockTaking
	case l.try:
		l.phase = lockRefused
	default:
		l.wait(now)
	}
}

// wait lets a while go by until the next look, at most until the lease is over.
func (l *Lock) wait(now mono.Time) {
	l.phase, l.at = lockPausing, now.Add(l.pause)
	if l.known && l.seen&heldBit != 0 {
		l.at = max(min(l.at, l.since.Add(l.cfg.Lease)), now)
	}
	l.pause = min(2*l.pause, l.cfg.MaxPause)
}

// took is a contender's success.
func (l *Lock) took(now mono.Time) {
	l.word = taken(l.seen)
	l.token = Token(l.word)
	l.until = l.limit(l.began)
	l.doubt, l.maybeFreed, l.phase = false, false, lockHolding
	l.known, l.seen, l.since, l.pause, l.at = false, 0, 0, 0, 0
	if now >= l.until { // it took longer than the lease
		l.observe(now, l.word)
	}
}

// limit is how long the lock is held by an operation that was begun at a time.
func (l *Lock) limit(began mono.Time) mono.Time { return began.Add(l.cfg.Lease - l.cfg.Margin) }

// own reports whether a word that a holder did not expect is its own doubtful
// renewal: nobody else can have changed the word yet.
func (l *Lock) own(now mono.Time, word uint64) bool {
	return l.doubt && word == renewed(l.word) && now < l.until
}

func (l *Lock) wasRenewed(now mono.Time, word uint64) {
	from := l.began
	switch {
	case word == l.word:
	case l.own(now, word):
		from = l.doubtFrom
	default:
		l.end(lockLost)
		return
	}
	l.word, l.until, l.phase = renewed(l.word), l.limit(from), lockHolding
	l.doubt, l.doubtFrom = false, 0
}

func (l *Lock) wasReleased(now mono.Time, word uint64) {
	switch {
	case word == l.word, l.maybeFreed && word == freed(l.word):
		l.end(lockIdle)
	case l.own(now, word):
		l.word, l.doubt, l.maybeFreed = renewed(l.word), false, false
	default:
		l.end(lockLost)
	}
}

// end forgets everything but how it came out.
func (l *Lock) end(phase lockPhase) { *l = Lock{cfg: l.cfg, phase: phase} }

// Unknown implements [Machine]. Whoever does not know whether it has the lock does
// not hold it; whoever does not know whether a renewal or a release has taken effect
// tries it again, which can have no effect twice.
func (l *Lock) Unknown(now mono.Time) {
	switch l.phase {
	case lockWatching, lockTaking:
		l.wait(now)
	case lockRenewing:
		if !l.doubt {
			l.doubt, l.doubtFrom = true, l.began
		}
		if now >= l.until {
			l.end(lockLost)
		}
	case lockReleasing:
		l.maybeFreed = true
	default:
	}
}
