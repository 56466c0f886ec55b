package dsync

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
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
	d := &t.Descs[0]
	switch op.Kind {
	case syncproto.CompareSwap:
		t.Op, t.Compare, t.Operand = hixl.CompareSwap, op.Compare, op.Operand
	case syncproto.Read:
		t.Op, d.Local, d.LocalOff, d.Len = hixl.Read, p.local, op.Buf, op.Len
	case syncproto.Write:
		t.Op, d.Local, d.LocalOff, d.Len = hixl.Write, p.local, op.Buf, op.Len
	default:
	}
	return t
}

// result is what an operation has brought that is done.
func (p *place) result(op syncproto.Op, word uint64) syncproto.Result {
	if op.Kind != syncproto.Read {
		return syncproto.Result{Word: word}
	}
	b := p.local.Bytes()[op.Buf : op.Buf+op.Len]
	r := syncproto.Result{Word: binary.LittleEndian.Uint64(b)}
	if !op.Scan {
		return r
	}
	for r.Least = math.MaxUint64; len(b) >= 2*wordSize; b = b[wordSize:] {
		r.Least = min(r.Least, binary.LittleEndian.Uint64(b[wordSize:]))
	}
	return r
}

func (p *place) do(ctx context.Context, op syncproto.Op) (r syncproto.Result, err error) {
	d := hixl.Desc{Local: p.local, LocalOff: op.Buf, Remote: p.r, RemoteOff: p.off + op.Off, Len: op.Len}
	word := uint64(0)
	switch op.Kind {
	case syncproto.CompareSwap:
		word, err = p.r.Peer().CompareSwap(ctx, p.r, p.off+op.Off, op.Compare, op.Operand)
	case syncproto.Read:
		err = p.r.Peer().Read(ctx, d)
	case syncproto.Write:
		err = p.r.Peer().Write(ctx, d)
	default:
		word, err = p.r.Peer().FetchAdd(ctx, p.r, p.off+op.Off, 0)
	}
	if err != nil {
		return r, err
	}
	return p.result(op, word), nil
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
			r, err := p.do(ctx, op)
			if err == nil {
				failures = 0
				m.Done(now(), r)
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
