package hixl

import (
	"fmt"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
)

// badTransfer is a transfer that nobody can execute.
func (p *Peer) badTransfer(op TransferOp, what string) error {
	return fmt.Errorf("%w: %v to peer %v: %s", ErrTransfer, op, p.addr, what)
}

// checkTransfer finds the mistakes that need no lock.
func (p *Peer) checkTransfer(t *Transfer, descs []Desc) error {
	switch {
	case t.Op >= Notify && (t.Op != Notify || t.Notify == nil || len(descs) > 0):
		return p.badTransfer(t.Op, "no operation of a transfer")
	case len(descs) == 0 && t.Op != Notify:
		return p.badTransfer(t.Op, "no pieces")
	case t.Op.atomic() && len(descs) != 1:
		return p.badTransfer(t.Op, "an atomic acts on one word")
	case t.Flags&^(Ordered|FenceBefore|NoCoalesce) != 0:
		return p.badTransfer(t.Op, "unknown flags; unsignaled writes are Push's")
	case t.Notify != nil && (len(t.Notify.Name) > MaxNotification || len(t.Notify.Data) > MaxNotification || t.Notify.IsImm):
		return p.badTransfer(t.Op, fmt.Sprintf("a notification has a name and data of at most %d bytes each", MaxNotification))
	}
	return nil
}

// size is the bytes that a piece moves.
func (d *Desc) size() uint64 {
	if len(d.Inline) > 0 {
		return uint64(len(d.Inline))
	}
	return d.Len
}

// pieces is how many work requests n bytes take.
func pieces(n uint64) int { return max(1, int((n+maxPiece-1)/maxPiece)) }

// checkDesc refuses a piece that cannot be executed. p.mu is held.
func (p *Peer) checkDesc(op TransferOp, d *Desc) error {
	n := d.size()
	if op.atomic() {
		n = 8
	}
	if d.Remote != nil {
		if err := d.Remote.check(p, op, d.RemoteOff, n); err != nil {
			return err
		}
	} else if n > 0 {
		return &RegionError{Peer: p.addr, Op: op.String(), Err: ErrNoRegion}
	}
	switch {
	case op.atomic():
		return nil
	case len(d.Inline) > 0:
		if op == Read || len(d.Inline) > qp.MaxInline || d.Len != 0 && d.Len != n {
			return fmt.Errorf("%w: %d bytes inline in a %v of %d, allowed: up to %d, in writes", ErrTransfer, len(d.Inline), op, d.Len, qp.MaxInline)
		}
		return nil
	case n > 0:
		return p.c.checkLocal(op, d)
	}
	return nil
}

// checkLocal refuses local memory that cannot be used.
func (c *Context) checkLocal(op TransferOp, d *Desc) error {
	r := d.Local
	bad := func(err error) error {
		e := &RegionError{Region: "local", Op: op.String(), Off: d.LocalOff, Len: d.Len, Err: err}
		if r != nil {
			e.Size = r.Len()
		}
		return e
	}
	switch {
	case r == nil:
		return bad(ErrNoRegion)
	case r.pd.pd != c.pd.pd:
		return bad(mr.ErrPD)
	case !r.Valid():
		return bad(ErrStale)
	case d.LocalOff > r.Len() || d.Len > r.Len()-d.LocalOff:
		return bad(mr.ErrBounds)
	case op == Read && r.Access()&LocalWrite == 0:
		return bad(mr.ErrPermission)
	}
	return nil
}
