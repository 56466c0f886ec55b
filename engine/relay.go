package engine

import (
	"context"

	"github.com/gohixl/hixl"
)

// relay holds registered buffers through which memory that is not registered is
// copied. They are made when they are first needed, and go with the NIC.
type relay struct {
	c     *hixl.Context
	size  uint64
	slots chan *hixl.Region // nil: one that is not made yet
}

func (r *relay) init(c *hixl.Context, o *Options) {
	r.c, r.size, r.slots = c, o.BufferSize, make(chan *hixl.Region, o.Buffers)
	for range o.Buffers {
		r.slots <- nil
	}
}

// move copies a piece, a buffer at a time.
func (r *relay) move(ctx context.Context, p *hixl.Peer, op TransferOp, x *relayedPiece) error {
	var buf *hixl.Region
	select {
	case buf = <-r.slots:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.slots <- buf }()
	if buf == nil {
		made, err := r.c.Alloc(int(r.size), hixl.LocalWrite)
		if err != nil {
			return err
		}
		buf = made
	}
	for at := uint64(0); at < uint64(len(x.local)); at += r.size {
		part := x.local[at:min(at+r.size, uint64(len(x.local)))]
		if op == Write {
			copy(buf.Bytes(), part)
		}
		d := [1]hixl.Desc{{Local: buf, Remote: x.remote, RemoteOff: x.off + at, Len: uint64(len(part))}}
		if err := p.Do(ctx, &hixl.Transfer{Op: direction(op), Descs: d[:]}); err != nil {
			_ = buf.Deregister(ended) // what was sent may be sent again: not with other bytes
			buf = nil
			return err
		}
		if op == Read {
			copy(part, buf.Bytes())
		}
	}
	return nil
}
