package devicetest

import (
	"encoding/binary"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
)

// lateOp is one operation of a Late.
type lateOp struct {
	token  uint64
	c      device.Completer
	err    error
	pieces []*piece
	left   int // pieces that have not taken effect

	at  mono.Time // of completion
	seq uint64
}

type pieceKind uint8

const (
	writePiece pieceKind = iota
	readPiece
	atomicPiece
)

// piece is what takes effect at one time.
type piece struct {
	op     *lateOp
	kind   pieceKind
	off, n uint64
	data   []byte // staged bytes of a write, buffer of a read
	atomic *device.AtomicOp
	skip   bool // of a failed operation: does nothing

	at  mono.Time
	seq uint64
}

// conflicts reports whether the order of two pieces matters.
func (p *piece) conflicts(q *piece) bool {
	if p.kind == readPiece && q.kind == readPiece {
		return false
	}
	return p.off < q.off+q.n && q.off < p.off+p.n
}

func (p *piece) apply(mem []byte) {
	if p.skip {
		return
	}
	b := mem[p.off : p.off+p.n]
	switch p.kind {
	case writePiece:
		copy(b, p.data)
	case readPiece:
		copy(p.data, b)
	case atomicPiece:
		applyAtomic(b, p.atomic)
	}
}

// applyAtomic executes op on the 8 bytes of its word.
func applyAtomic(b []byte, op *device.AtomicOp) {
	old := binary.NativeEndian.Uint64(b)
	value, store := op.Apply(old)
	if store {
		binary.NativeEndian.PutUint64(b, value)
	}
	if op.Kind != device.Store {
		op.Result = old
	}
}

// pieceHeap orders pieces by time and then by issue.
type pieceHeap []*piece

func (h pieceHeap) Len() int { return len(h) }

func (h pieceHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h pieceHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *pieceHeap) Push(x any) { *h = append(*h, x.(*piece)) }

// Pop is for container/heap.
func (h *pieceHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}

// reportHeap orders completions by time and then by issue.
type reportHeap []*lateOp

func (h reportHeap) Len() int { return len(h) }

func (h reportHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h reportHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *reportHeap) Push(x any) { *h = append(*h, x.(*lateOp)) }

// Pop is for container/heap.
func (h *reportHeap) Pop() any {
	old := *h
	o := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return o
}
