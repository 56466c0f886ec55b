package dsync

import (
	"context"
	"errors"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// birth is when the clock of this process began, which reads 1 then.
var birth = time.Now()

func now() hixl.Time { return hixl.Time(1 + time.Since(birth)) }

// wall is a time of the clock for whoever reads it.
func wall(t hixl.Time) time.Time { return birth.Add(time.Duration(t - 1)) }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// load takes a word of the object's, as its home reads it.
func (p *place) load(ctx context.Context, off uint64) (word uint64, err error) {
	for n := 0; ; n++ {
		word, err = p.r.Peer().FetchAdd(ctx, p.r, p.off+off, 0)
		if err == nil || !patient(ctx, n, err) {
			return word, err
		}
	}
}

// transfer is an operation of a machine as the peer is asked for it.
func (p *place) transfer(op syncproto.Op) *hixl.Transfer {
	t := &hixl.Transfer{Op: hixl.FetchAdd, Descs: []hixl.Desc{{Remote: p.r, RemoteOff: p.off + op.Off}}}
	if op.Kind == syncproto.CompareSwap {
		t.Op, t.Compare, t.Operand = hixl.CompareSwap, op.Compare, op.Operand
	}
	return t
}

func (p *place) do(ctx context.Context, op syncproto.Op) (uint64, error) {
	if op.Kind == syncproto.CompareSwap {
		return p.r.Peer().CompareSwap(ctx, p.r, p.off+op.Off, op.Compare, op.Operand)
	}
	return p.r.Peer().FetchAdd(ctx, p.r, p.off+op.Off, 0)
}

// run lets a machine work until it comes to an end, or ctx ends, or the object cannot
// be reached.
func (p *place) run(ctx context.Context, m syncproto.Machine) error {
	for failures := 0; ; {
		switch op := m.Next(now()); op.Kind {
		case syncproto.None:
			return nil
		case syncproto.Pause:
			sleep(ctx, op.At.Sub(now()))
			if err := ctx.Err(); err != nil {
				return err
			}
		default:
			word, err := p.do(ctx, op)
			if err == nil {
				failures = 0
				m.Done(now(), syncproto.Result{Word: word})
				continue
			}
			m.Unknown(now())
			if !patient(ctx, failures, err) {
				return err
			}
			failures++
		}
	}
}

// patient reports whether to go on after an error: when a connection has broken, and
// may come back. It waits a little then.
func patient(ctx context.Context, failures int, err error) bool {
	t := (*hixl.TransferError)(nil)
	if !errors.As(err, &t) || !t.Retriable || errors.Is(err, hixl.ErrPeerDown) || ctx.Err() != nil {
		return false
	}
	sleep(ctx, time.Millisecond<<min(failures, 7))
	return ctx.Err() == nil
}
