package dsync

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// MaxParties is how many parties a barrier has at most.
const MaxParties = 1 << 15

// A barrier's words, after its header: how many parties it has, how long one waits in
// nanoseconds, the word that says how many rounds have been passed, and those of the
// parties.
const (
	roundAt = 3 * wordSize
	partyAt = 4 * wordSize
)

// BarrierSize returns how many bytes of a region a barrier takes, at a multiple of 8.
func BarrierSize(parties uint64) uint64 { return partyAt + parties*wordSize }

// InitBarrier lays out a barrier at its home, for 1 to [MaxParties] parties. A party that
// has arrived waits for patience, 0 is for ever; then it gives the round up for all. It
// should be many times what the slowest party needs from round to round. The error is
// an *[Error] that unwraps to [ErrLayout].
func InitBarrier(r *hixl.Region, off, parties uint64, patience time.Duration) error {
	if err := checkParties(parties, patience); err != nil {
		return &Error{Object: barrierKind.String(), Op: "init", Off: off, Err: err}
	}
	return barrierKind.lay(r, off, BarrierSize(parties), parties, uint64(patience))
}

func checkParties(parties uint64, patience time.Duration) error {
	if parties < 1 || parties > MaxParties || patience < 0 {
		return fmt.Errorf("%w: %d parties who wait %v, allowed: 1 to %d, who wait for 0 or longer", ErrLayout, parties, patience, MaxParties)
	}
	return nil
}

// Barrier is one party of a barrier, at which each waits until all have arrived, round
// after round. Its methods may be called from any goroutine.
type Barrier struct {
	place
	parties uint64

	mu sync.Mutex // held while an operation is at work
	m  syncproto.Barrier
}

// OpenBarrier makes a handle for party number, from 0 to one less than there are, of the
// barrier at an offset of a peer's region. Its first round is the first that has not
// been passed when it first waits: a party that has died can be replaced before the
// others lose patience. No two may be the same party at a time. Close gives its
// memory back. The error is an *[Error] that unwraps to [ErrLayout], or to that of the
// transfer.
func OpenBarrier(ctx context.Context, r *hixl.RemoteRegion, off, number uint64) (*Barrier, error) {
	b := &Barrier{place: place{kind: barrierKind, r: r, off: off}}
	patience := uint64(0)
	err := b.openWords(ctx, &b.parties, &patience)
	if err == nil {
		err = checkParties(b.parties, time.Duration(patience))
	}
	if err == nil && number >= b.parties {
		err = fmt.Errorf("%w: it has %d parties, the first being 0: there is no %d", ErrLayout, b.parties, number)
	}
	if err == nil {
		err = b.within(BarrierSize(b.parties))
	}
	if err == nil {
		err = b.alloc(ctx, (1+b.parties)*wordSize)
	}
	if err != nil {
		return nil, b.fail("open", err)
	}
	b.m = syncproto.NewBarrier(barrierConfig(b.parties, number, time.Duration(patience)))
	return b, nil
}

func barrierConfig(parties, number uint64, patience time.Duration) syncproto.BarrierConfig {
	return syncproto.BarrierConfig{
		Off: roundAt, Parties: parties, Number: number, Patience: patience, MinPause: 20 * time.Microsecond, MaxPause: 2 * time.Millisecond,
	}
}

// Wait arrives at the next round and returns its number, counted from 1, when all have
// arrived at it. What each has written and completed before is visible to all then.
// When ctx ends the party has arrived all the same, and the next Wait goes on with the
// round. The error is an *[Error]; it unwraps to a *[BrokenError] when the round was
// given up: then no party passes it, nor any later one.
func (b *Barrier) Wait(ctx context.Context) (round uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.m.Begin()
	err = b.work(ctx)
	return b.m.Passed(), b.fail("wait", err)
}

// Break gives a round up for all, so that nobody waits for what will not come: round,
// counted from 1, is the one after that which the last Wait has returned, 1 before the
// first. The barrier is of no use any more: lay out another. A round that all have
// passed meanwhile stays passed, and Break does nothing, so that one that comes late
// does not break the next. The error is an *[Error]; it unwraps to [ErrConflict] for a
// round that is not at work yet. A round that was broken before is none.
func (b *Barrier) Break(ctx context.Context, round uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if round == 0 {
		return b.fail("break", fmt.Errorf("%w: rounds are counted from 1", ErrConflict))
	}
	b.m.Break(round)
	err := b.run(ctx, &b.m)
	switch {
	case err != nil:
	case b.m.Strange():
		err = errStrange
	case b.m.Early():
		err = fmt.Errorf("%w: round %d is not at work yet", ErrConflict, round)
	}
	return b.fail("break", err)
}

var errStrange = fmt.Errorf("%w: its words are none that this package writes", ErrLayout)

func (b *Barrier) work(ctx context.Context) error {
	if err := b.run(ctx, &b.m); err != nil {
		return err
	}
	switch {
	case b.m.Strange():
		return errStrange
	case b.m.Broken():
		return &BrokenError{Round: b.m.Passed() + 1, Missing: b.missing(b.m.Passed() + 1)}
	}
	return nil
}

// missing lists the parties that had not arrived at a round, when last seen.
func (b *Barrier) missing(round uint64) (numbers []uint64) {
	words := b.local.Bytes()[wordSize:]
	for n := range b.parties {
		if binary.LittleEndian.Uint64(words[n*wordSize:]) < round {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Close gives the handle's memory back. The party does not leave the barrier.
func (b *Barrier) Close() error { return b.local.Deregister(context.Background()) }

// BrokenError says that a round of a barrier was given up, since some party waited
// for longer than the barrier's patience, or called Break.
type BrokenError struct {
	Round   uint64
	Missing []uint64 // parties that had not arrived when this one last looked
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("round %d was given up; parties that were missing: %v", e.Round, e.Missing)
}
