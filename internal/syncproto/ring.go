package syncproto

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// A ring's words, of its producer and behind it of its consumer, say how many times
// there has been another, and how many records it has put in, or taken out.
const countBits = 48

// CountOf is the number of records of a ring's word, TermOf the number of the
// producer, or consumer.
func CountOf(w uint64) uint64 { return w & (1<<countBits - 1) }

// TermOf is the number of the producer, or consumer, whose word it is.
func TermOf(w uint64) uint64 { return w >> countBits }

// claimed is the word with which another takes over, with as many records.
func claimed(w uint64) uint64 { return w + 1<<countBits }

// withCount is the word with another number of records.
func withCount(w, n uint64) uint64 { return TermOf(w)<<countBits | n&(1<<countBits-1) }

// RingConfig is what a ring's ends agree about.
type RingConfig struct {
	Off      uint64 // of the producer's word; the consumer's follows
	Slots    uint64 // of the first slot
	SlotSize uint64 // in bytes, a multiple of 8
	Count    uint64 // of slots
	Batch    uint64 // how many records the consumer takes before it gives their slots back
	// MinPause and MaxPause bound the time between two looks.
	MinPause, MaxPause time.Duration
}

func (c *RingConfig) slot(n uint64) uint64 { return c.Slots + n%c.Count*c.SlotSize }

type ringPhase uint8

const (
	ringIdle ringPhase = iota
	ringFinding
	ringClaiming
	ringLooking
	ringPausing
	ringMoving
	ringConfirming
	ringSwapping
	ringDoubting
	ringFenced
	ringStrange
)

// end is what both ends of a ring have in common.
type end struct {
	cfg    RingConfig
	off    uint64 // of its own word
	peer   uint64 // of the other's
	phase  ringPhase
	word   uint64 // its own, as it is
	to     uint64 // what the swap at work makes it
	doubt  bool   // that swap may have taken effect, or may yet
	waited bool   // for the other
	other  uint64 // its word, as last seen
	pause  time.Duration
	at     mono.Time
}

// Open begins to take the end over from whoever had it.
func (e *end) Open() { e.phase = ringFinding }

// Fenced reports whether another has taken the end over.
func (e *end) Fenced() bool { return e.phase == ringFenced }

// Strange reports whether the words are none that ends of a ring write.
func (e *end) Strange() bool { return e.phase == ringStrange }

// Other is the other end's word as it was last seen.
func (e *end) Other() uint64 { return e.other }

// Word is the end's own word.
func (e *end) Word() uint64 { return e.word }

// Doubtful reports whether nobody can say if a swap has taken effect.
func (e *end) Doubtful() bool { return e.phase == ringSwapping && e.doubt }

func (e *end) next(now mono.Time) (op Op, known bool) {
	switch e.phase {
	case ringFinding:
		return Op{Kind: Load, Off: e.off}, true
	case ringClaiming, ringSwapping:
		return Op{Kind: CompareSwap, Off: e.off, Compare: e.word, Operand: e.to}, true
	case ringPausing:
		if now < e.at {
			return Op{Kind: Pause, At: e.at}, true
		}
		e.phase, e.at = ringLooking, 0
		fallthrough
	case ringLooking:
		return Op{Kind: Load, Off: e.peer}, true
	case ringDoubting:
		return Op{Kind: Load, Off: e.off}, true
	default:
		return Op{}, false
	}
}

// found deals with what taking over has brought; true: the end is taken.
func (e *end) found(r Result) bool {
	if e.phase == ringClaiming && r.Word == e.word {
		e.word = e.to
		return true
	}
	e.word, e.to, e.phase = r.Word, claimed(r.Word), ringClaiming
	return false
}

// swap begins to make the own word another.
func (e *end) swap(to uint64) { e.to, e.doubt, e.phase = to, false, ringSwapping }

// swapped judges the end of that; true: it is so.
func (e *end) swapped(r Result) bool {
	if r.Word == e.word || e.doubt && r.Word == e.to {
		e.word, e.doubt = e.to, false
		return true
	}
	e.phase = ringFenced
	return false
}

// doubted judges why the words do not fit together: another has taken this end over,
// or nobody wrote them who should.
func (e *end) doubted(r Result) {
	if e.phase = ringStrange; r.Word != e.word {
		e.phase = ringFenced
	}
}

func (e *end) wait(now mono.Time) {
	e.phase, e.at = ringPausing, now.Add(e.pause)
	e.pause = min(2*e.pause, e.cfg.MaxPause)
}

// Unknown implements [Machine]: all can be tried again.
func (e *end) Unknown(mono.Time) {
	if e.phase == ringSwapping {
		e.doubt = true
	}
}

// Produce is the end of a ring that puts records in. The record, a slot, is in its
// local memory from 0 on.
type Produce struct {
	end
	begun bool // a record waits for the swap of the one before
}

// NewProduce returns a producer that has not taken over.
func NewProduce(cfg RingConfig) Produce {
	return Produce{end: end{cfg: cfg, off: cfg.Off, peer: cfg.Off + 8}}
}

// Begin begins to put a record in. One before it whose end is not known comes first.
func (p *Produce) Begin() {
	p.pause = p.cfg.MinPause
	switch p.phase {
	case ringFenced, ringStrange:
	case ringSwapping:
		p.begun = true
	default:
		p.start()
	}
}

// start writes when there is room, as far as is known.
func (p *Produce) start() {
	p.begun = false
	switch used := CountOf(p.word - CountOf(p.other)); {
	case used < p.cfg.Count:
		p.phase = ringMoving
	case used == p.cfg.Count:
		p.phase = ringLooking
	default:
		p.phase = ringDoubting
	}
}

// Seq is the number of the record that Begin put in, counted from 0; of the next
// one, at rest.
func (p *Produce) Seq() uint64 {
	if p.begun {
		return CountOf(p.to)
	}
	return CountOf(p.word)
}

// Stamp says who puts record seq in.
func (p *Produce) Stamp(seq uint64) uint64 { return withCount(p.word, seq) }

// Next implements [Machine].
func (p *Produce) Next(now mono.Time) Op {
	if op, ok := p.next(now); ok {
		return op
	}
	if p.phase == ringMoving {
		return Op{Kind: Write, Off: p.cfg.slot(CountOf(p.word)), Len: p.cfg.SlotSize}
	}
	return Op{}
}

// Done implements [Machine].
func (p *Produce) Done(now mono.Time, r Result) {
	switch p.phase {
	case ringFinding, ringClaiming:
		if p.found(r) {
			p.other, p.phase = withCount(0, CountOf(p.word-p.cfg.Count)), ringLooking
			p.waited = true
		}
	case ringLooking:
		p.look(now, r.Word)
	case ringDoubting:
		p.doubted(r)
	case ringMoving:
		p.swap(withCount(p.word, CountOf(p.word)+1))
	case ringSwapping:
		if !p.swapped(r) {
			return
		}
		if p.phase = ringIdle; p.begun {
			p.start()
		}
	default:
	}
}

// look takes what the consumer says. The first look after taking over only learns.
func (p *Produce) look(now mono.Time, word uint64) {
	if p.other = word; p.waited {
		p.waited, p.phase = false, ringIdle
		if CountOf(p.word-CountOf(word)) > p.cfg.Count {
			p.phase = ringDoubting
		}
		return
	}
	if p.start(); p.phase == ringLooking {
		p.wait(now)
	}
}

// Consume is the end of a ring that takes records out. What it has taken is in its
// local memory from 0 on.
type Consume struct {
	end
	read uint64 // records that were taken; those that were given back are in word
	all  bool   // give all back now, and take none
}

// NewConsume returns a consumer that has not taken over.
func NewConsume(cfg RingConfig) Consume {
	return Consume{end: end{cfg: cfg, off: cfg.Off + 8, peer: cfg.Off}}
}

// Begin begins to take a record.
func (c *Consume) Begin() { c.begin(false) }

// Commit begins to give back the slots of all records that were taken, so that
// no consumer gets them again.
func (c *Consume) Commit() { c.begin(true) }

func (c *Consume) begin(all bool) {
	c.all, c.pause = all, c.cfg.MinPause
	switch c.phase {
	case ringFenced, ringStrange, ringSwapping:
	default:
		c.start(c.cfg.Batch)
	}
}

// owed is how many slots are to be given back.
func (c *Consume) owed() uint64 { return CountOf(c.read - CountOf(c.word)) }

// start gives slots back when there are so many of them, and takes the next record
// if one is known.
func (c *Consume) start(batch uint64) {
	owed, ready := c.owed(), CountOf(CountOf(c.other)-c.read)
	switch {
	case c.all && owed == 0:
		c.phase = ringIdle
	case c.all, owed >= batch:
		c.swap(withCount(c.word, c.read))
	case ready == 0:
		c.phase = ringLooking
	case ready > c.cfg.Count:
		c.phase = ringDoubting
	default:
		c.phase = ringMoving
	}
}

// Seq is the number of the record that was taken, counted from 0.
func (c *Consume) Seq() uint64 { return CountOf(c.read - 1) }

// Next implements [Machine].
func (c *Consume) Next(now mono.Time) Op {
	if op, ok := c.next(now); ok {
		return op
	}
	switch c.phase {
	case ringMoving:
		return Op{Kind: Read, Off: c.cfg.slot(c.read), Len: c.cfg.SlotSize}
	case ringConfirming:
		return Op{Kind: Load, Off: c.off}
	default:
		return Op{}
	}
}

// Done implements [Machine].
func (c *Consume) Done(now mono.Time, r Result) {
	switch c.phase {
	case ringFinding, ringClaiming:
		if c.found(r) {
			c.read, c.other, c.phase = CountOf(c.word), CountOf(c.word), ringIdle
		}
	case ringLooking:
		c.look(now, r.Word)
	case ringDoubting:
		c.doubted(r)
	case ringMoving:
		c.phase = ringConfirming
	case ringConfirming:
		if r.Word != c.word {
			c.phase = ringFenced
			return
		}
		c.read, c.phase = CountOf(c.read+1), ringIdle
	case ringSwapping:
		if c.swapped(r) {
			c.start(c.cfg.Batch)
		}
	default:
	}
}

// look takes what the producer says; before it waits for more, it gives back what it
// has taken.
func (c *Consume) look(now mono.Time, word uint64) {
	c.other = word
	batch := c.cfg.Batch
	if CountOf(word) == c.read {
		batch = 1
	}
	if c.start(batch); c.phase == ringLooking {
		c.wait(now)
	}
}
