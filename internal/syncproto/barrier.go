package syncproto

import (
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// The barrier's word is how many rounds have been passed, and a bit that says whether
// the one at work is given up. The words of the parties follow it: at how many rounds
// each has arrived.
const brokenBit = 1

// RoundOf is how many rounds a barrier's word says have been passed.
func RoundOf(w uint64) uint64 { return w >> 1 }

func roundWord(round uint64) uint64 { return round << 1 }

// BarrierConfig is what a barrier's parties agree about, and which of them one is.
type BarrierConfig struct {
	Off     uint64 // of the barrier's word
	Parties uint64
	Number  uint64 // of this party
	// Patience is how long a party that has arrived waits before it gives the round
	// up for all; 0 is for ever.
	Patience time.Duration
	// MinPause and MaxPause bound the time between two looks.
	MinPause, MaxPause time.Duration
}

type barrierPhase uint8

const (
	barrierIdle barrierPhase = iota
	barrierLooking
	barrierPausing
	barrierArriving
	barrierPassing
	barrierBreaking
	barrierBroken
	barrierStrange
)

// Barrier is one party of a barrier.
type Barrier struct {
	cfg     BarrierConfig
	phase   barrierPhase
	known   bool   // passed is
	passed  uint64 // rounds that this party has passed
	arrived bool   // at the next one
	quit    uint64 // the round to give up, 0 none
	early   bool   // that is not at work yet
	from    uint64 // of a swap at work
	since   mono.Time
	pause   time.Duration
	at      mono.Time
}

// NewBarrier returns a party at rest. Its first round is the first that has not been
// passed when it first looks, whoever has been this party before.
func NewBarrier(cfg BarrierConfig) Barrier { return Barrier{cfg: cfg} }

// Begin begins to arrive at the next round and to wait for the others, or goes on with
// it.
func (b *Barrier) Begin() { b.start(0) }

// Break begins to give a round up for all, counted from 1. One that has been passed
// stays so, and those after it are left alone; nor is one given up that is not at work
// yet, see Early.
func (b *Barrier) Break(round uint64) { b.start(round) }

func (b *Barrier) start(quit uint64) {
	if b.phase != barrierBroken && b.phase != barrierStrange {
		b.quit, b.early, b.phase, b.pause = quit, false, barrierLooking, b.cfg.MinPause
	}
}

// Early reports whether the round of the last Break was not at work yet.
func (b *Barrier) Early() bool { return b.early }

// Passed is how many rounds this party has passed.
func (b *Barrier) Passed() uint64 { return b.passed }

// Broken reports whether the round after those was given up.
func (b *Barrier) Broken() bool { return b.phase == barrierBroken }

// Strange reports whether the words are none that parties write.
func (b *Barrier) Strange() bool { return b.phase == barrierStrange }

func (b *Barrier) target() uint64 { return b.passed + 1 }

// Next implements [Machine].
func (b *Barrier) Next(now mono.Time) Op {
	switch b.phase {
	case barrierPausing:
		if now < b.at {
			return Op{Kind: Pause, At: b.at}
		}
		b.phase, b.at = barrierLooking, 0
		fallthrough
	case barrierLooking:
		return Op{Kind: Read, Off: b.cfg.Off, Len: 8 * (1 + b.cfg.Parties), Scan: true}
	case barrierArriving:
		return Op{Kind: CompareSwap, Off: b.cfg.Off + 8*(1+b.cfg.Number), Compare: b.passed, Operand: b.target()}
	case barrierPassing:
		return Op{Kind: CompareSwap, Off: b.cfg.Off, Compare: b.from, Operand: roundWord(b.target())}
	case barrierBreaking:
		return Op{Kind: CompareSwap, Off: b.cfg.Off, Compare: b.from, Operand: b.from | brokenBit}
	default:
		return Op{}
	}
}

// Done implements [Machine].
func (b *Barrier) Done(now mono.Time, r Result) {
	switch b.phase {
	case barrierLooking:
		b.look(now, r)
	case barrierArriving:
		if r.Word != b.passed && r.Word != b.target() {
			b.phase = barrierStrange
			return
		}
		b.arrived, b.since, b.phase = true, now, barrierLooking
	case barrierPassing:
		if r.Word == b.from {
			r.Word = roundWord(b.target())
		}
		b.settle(r.Word)
	case barrierBreaking:
		if r.Word == b.from {
			r.Word |= brokenBit
		}
		b.settle(r.Word)
	default:
	}
}

// settle judges the barrier's word, and reports whether it decides anything.
func (b *Barrier) settle(word uint64) {
	if b.from = 0; !b.known {
		b.known, b.passed = true, RoundOf(word)
	}
	switch round := RoundOf(word); {
	case round < b.passed, round > b.target():
		b.phase = barrierStrange
	case b.quit > 0 && round+1 != b.quit:
		b.early, b.phase = round < b.quit, barrierIdle
	case round == b.target() && b.quit == 0:
		b.passed, b.arrived, b.since, b.phase = round, false, 0, barrierIdle
	case word&brokenBit != 0:
		b.phase = barrierBroken
	default:
		b.phase = barrierLooking
	}
}

func (b *Barrier) look(now mono.Time, r Result) {
	b.settle(r.Word)
	if b.phase != barrierLooking {
		return
	}
	b.from = r.Word
	switch {
	case b.quit > 0:
		b.phase = barrierBreaking
	case !b.arrived:
		b.phase = barrierArriving
	case r.Least >= b.target():
		b.phase = barrierPassing
	case b.cfg.Patience > 0 && now.Sub(b.since) >= b.cfg.Patience:
		b.phase = barrierBreaking
	default:
		b.phase, b.at = barrierPausing, now.Add(b.pause)
		b.pause = min(2*b.pause, b.cfg.MaxPause)
	}
}

// Unknown implements [Machine]: each operation can be tried again. A party arrives at
// a round once, whoever says so twice; and what the barrier's word becomes, it becomes
// once.
func (b *Barrier) Unknown(mono.Time) {}
