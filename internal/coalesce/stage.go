package coalesce

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Config says how much is gathered.
type Config struct {
	// Bytes and Count are how much makes a stage full; Delay is how old its
	// oldest write may become.
	Bytes, Count int
	Delay        time.Duration
}

// Run is bytes that lie side by side in the stage and at the target: one write.
type Run struct {
	// Target names where they go, At is the place there.
	Target any
	At     uint64
	// Off and Len are where they lie in the stage's buffer.
	Off, Len uint32
}

// Stage gathers writes in a buffer. Their order is kept: a write is only joined to
// the one right before it. Begin it with a buffer before use.
type Stage struct {
	cfg   Config
	buf   []byte
	used  int
	count int
	runs  []Run
	since mono.Time // of the oldest write
}

// Init sets the limits.
func (s *Stage) Init(cfg Config) { s.cfg = cfg }

// Begin starts to gather in buf, of at least Config.Bytes bytes, which is the
// stage's until Take.
func (s *Stage) Begin(now mono.Time, buf []byte) {
	s.buf, s.used, s.count, s.since = buf, 0, 0, now
	s.runs = s.runs[:0]
}

// Empty reports whether nothing is gathered.
func (s *Stage) Empty() bool { return s.count == 0 }

// Fits reports whether n more bytes have room.
func (s *Stage) Fits(n int) bool { return n <= len(s.buf)-s.used }

// Add gathers a write whose bytes fit, and copies them. It reports whether the stage
// is full now.
func (s *Stage) Add(target any, at uint64, b []byte) (full bool) {
	copy(s.buf[s.used:], b)
	if n := len(s.runs); n > 0 && s.runs[n-1].Target == target && s.runs[n-1].At+uint64(s.runs[n-1].Len) == at {
		s.runs[n-1].Len += uint32(len(b))
	} else {
		s.runs = append(s.runs, Run{Target: target, At: at, Off: uint32(s.used), Len: uint32(len(b))})
	}
	s.used += len(b)
	s.count++
	return s.used >= s.cfg.Bytes || s.count >= s.cfg.Count
}

// Deadline returns when what is gathered is to go at the latest; 0 is never.
func (s *Stage) Deadline() mono.Time {
	if s.count == 0 {
		return 0
	}
	return s.since.Add(s.cfg.Delay)
}

// Take ends the gathering and returns what there is, in order. It is valid until
// the next Begin.
func (s *Stage) Take() (runs []Run, writes int) {
	writes = s.count
	s.count, s.used, s.buf = 0, 0, nil
	return s.runs, writes
}
