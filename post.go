package hixl

import (
	"encoding/binary"
	"fmt"

	"github.com/gohixl/hixl/qp"
)

// post posts a piece. What is refused has failed. p.mu is held.
func (p *Peer) post(l *lane, x *piece) {
	if err := p.enqueue(l, x); err != nil {
		if x.spends {
			p.inc.refund()
		}
		p.fail(x, err)
	}
}

// enqueue is post, or why it is refused. With a piece of a transfer fail those that
// follow: nobody is told of what is not there. p.mu is held.
func (p *Peer) enqueue(l *lane, x *piece) error {
	if x.h != nil && x.h.err != nil {
		return x.h.err
	}
	if x.remote != nil {
		if err := x.remote.check(p, x.op, x.roff, x.n); err != nil { // it may have waited
			return err
		}
	}
	var f frame
	f.wr[0] = SendWR{ID: l.seq + 1, Flags: l.signal(x), Imm: x.imm, Compare: x.compare, SwapAdd: x.operand}
	e := posted{h: x.h, n: x.n, kind: x.kind, slot: x.slot, silent: x.flags&Unsignaled != 0}
	if err := p.prepare(&f, x, &e); err != nil {
		return err
	}
	if err := l.conn.q.Post(f.wr[:]); err != nil {
		if x.kind != pieceChunk { // fail gives that back
			p.let(&e)
		}
		return fmt.Errorf("%w: %w", ErrPeerDown, err)
	}
	if l.silent++; f.wr[0].Flags&Signaled != 0 {
		l.silent = 0
	}
	l.seq++
	l.fifo.Push(e)
	l.bytes += x.n
	if h := x.h; h != nil {
		h.gen, h.executed = l.gen, true
	}
	if !l.bell {
		l.bell = true
		p.bells = append(p.bells, l)
	}
	return nil
}

// wrOps are the work requests of operations.
var wrOps = [numTransferOps]Op{
	Read: OpRead, Write: OpWrite, WriteImm: OpWriteImm, CompareSwap: OpCmpSwap, FetchAdd: OpFetchAdd, AtomicStore: OpAtomicWrite, Notify: OpSend,
}

// frame is the memory of a work request while it is posted.
type frame struct {
	wr   [1]SendWR
	sge  [1]SGE
	word [8]byte
}

// prepare fills in a work request. p.mu is held.
func (p *Peer) prepare(f *frame, x *piece, e *posted) (err error) {
	w := &f.wr[0]
	w.Op = wrOps[x.op]
	if x.flags&FenceBefore != 0 {
		w.Flags |= Fence
	}
	if r := x.remote; r != nil {
		w.RemoteAddr, w.RKey = r.d.Addr+x.roff, r.d.RKey
	}
	switch {
	case x.kind == pieceWord:
		var r *Region
		var off uint64
		if e.slot, r, off, err = p.c.words.take(); err == nil {
			f.sge[0] = r.SGE(off, 8)
		}
		w.SGE = f.sge[:]
	case x.op == AtomicStore:
		f.word = Word(x.operand)
		w.Inline = f.word[:]
	case len(x.inline) > qp.MaxInline:
		var r *Region
		var off uint64
		if e.slot, r, off, err = p.c.outbox.take(); err == nil {
			e.kind = pieceLetter
			copy(p.c.outbox.bytes(e.slot), x.inline)
			f.sge[0] = r.SGE(off, uint32(len(x.inline)))
		}
		w.SGE = f.sge[:]
	case len(x.inline) > 0:
		w.Inline = x.inline
	case x.n > 0:
		f.sge[0] = x.local.SGE(x.off, uint32(x.n))
		w.SGE = f.sge[:]
	}
	return err
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
