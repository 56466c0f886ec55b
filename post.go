package hixl

import (
	"encoding/binary"
	"fmt"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
)

// post posts a piece. What is refused has failed. p.mu is held.
func (p *Peer) post(now mono.Time, l *lane, x *piece) {
	if err := p.enqueue(now, l, x); err != nil {
		if x.spends {
			p.inc.refund()
		}
		p.fail(x, err)
	}
}

// enqueue is post, or why it is refused. With a piece of a transfer fail those that
// follow: nobody is told of what is not there. p.mu is held.
func (p *Peer) enqueue(now mono.Time, l *lane, x *piece) error {
	if x.h != nil && x.h.err != nil {
		return x.h.err
	}
	var addr uint64
	var key uint32
	if r := x.remote; r != nil {
		if err := r.check(p, x.op, x.roff, x.n); err != nil { // it may have waited
			return err
		}
		addr, key = r.d.Addr+x.roff, r.d.RKey
	}
	e := posted{h: x.h, n: x.n, kind: x.kind, slot: x.slot, silent: x.flags&Unsignaled != 0}
	local, err := p.source(x, &e)
	if err != nil {
		return err
	}
	flags := l.signal(x)
	if x.flags&FenceBefore != 0 {
		flags |= Fence
	}
	sge, word := [1]SGE{local}, Word(x.operand)
	wrs := [1]SendWR{{ // on the stack, as all it points to
		ID: l.seq + 1, Op: wrOps[x.op], Flags: flags, RemoteAddr: addr, RKey: key, Imm: x.imm, Compare: x.compare, SwapAdd: x.operand,
	}}
	switch {
	case x.op == AtomicStore:
		wrs[0].Inline = word[:]
	case len(x.inline) > 0 && e.kind != pieceLetter:
		wrs[0].Inline = x.inline
	case local.Length > 0:
		wrs[0].SGE = sge[:]
	}
	if err := l.conn.q.Post(now, wrs[:]); err != nil {
		if x.kind != pieceChunk { // fail gives that back
			p.let(&e)
		}
		return fmt.Errorf("%w: %w", ErrPeerDown, err)
	}
	if l.silent++; flags&Signaled != 0 {
		l.silent = 0
	}
	p.note(now, l, &e)
	return nil
}

// note keeps account of a work request that was posted. p.mu is held.
func (p *Peer) note(now mono.Time, l *lane, e *posted) {
	l.seq++
	l.fifo.Push(*e)
	l.bytes += e.n
	if h := e.h; h != nil {
		h.gen, h.executed = l.gen, true
	}
	p.posted = now
	if !l.bell {
		l.bell = true
		p.bells = append(p.bells, l)
	}
}

// wrOps are the work requests of operations.
var wrOps = [numTransferOps]Op{
	Read: OpRead, Write: OpWrite, WriteImm: OpWriteImm, CompareSwap: OpCmpSwap, FetchAdd: OpFetchAdd, AtomicStore: OpAtomicWrite, Notify: OpSend,
}

// source returns the registered memory of a work request, if any, and notes what of
// the context's it holds. p.mu is held.
func (p *Peer) source(x *piece, e *posted) (SGE, error) {
	switch {
	case x.kind == pieceWord:
		slot, r, off, err := p.c.words.take()
		if err != nil {
			return SGE{}, err
		}
		e.slot = slot
		return r.SGE(off, 8), nil
	case len(x.inline) > qp.MaxInline:
		slot, r, off, err := p.c.outbox.take()
		if err != nil {
			return SGE{}, err
		}
		e.slot, e.kind = slot, pieceLetter
		copy(p.c.outbox.bytes(slot), x.inline)
		return r.SGE(off, uint32(len(x.inline))), nil
	case x.n > 0 && len(x.inline) == 0 && x.op != AtomicStore:
		return x.local.SGE(x.off, uint32(x.n)), nil
	}
	return SGE{}, nil
}

// let gives back what a work request holds of the context's.
func (p *Peer) let(e *posted) (result uint64) {
	switch e.kind {
	case pieceWord:
		result = binary.NativeEndian.Uint64(p.c.words.bytes(e.slot))
		p.c.words.put(e.slot)
	case pieceLetter:
		p.c.outbox.put(e.slot)
	case pieceChunk:
		p.c.chunks.put(e.slot)
	default:
	}
	return result
}
