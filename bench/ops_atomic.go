package bench

import (
	"fmt"

	"github.com/gohixl/hixl"
)

// results is where the original values of atomics arrive: a word for each
// message outstanding, lane by lane.
type results struct {
	buffer *buffer
	lay    layout
	depth  uint64
}

func (r *results) offset(lane int, n uint64) int {
	return r.lay.dst(lane, 0) + int(n%r.depth)*atomicSize
}

func (r *results) value(lane int, n uint64) (uint64, error) {
	return r.buffer.word(r.offset(lane, n))
}

func (r *results) address(lane int, n uint64) uint64 {
	return r.buffer.Addr() + uint64(r.offset(lane, n))
}

// atomicRequest is the work request of an atomic and where its results go.
func (e *endpoint) atomicRequest(l *lanes, peer *welcome) (results, hixl.SendWR) {
	r := results{buffer: e.dst, lay: l.lay, depth: uint64(l.cell.Depth)}
	return r, hixl.SendWR{
		Op: sendOps[l.cell.Op], RKey: peer.Dst.RKey,
		SGE: []hixl.SGE{{Length: atomicSize, LKey: e.dst.LKey()}},
	}
}

func (e *endpoint) casOperation(l *lanes, peer *welcome) (operation, hixl.SendWR) {
	r, wr := e.atomicRequest(l, peer)
	return &casOp{results: r, remote: peer.Dst, base: make([]uint64, len(l.qps))}, wr
}

func (e *endpoint) faaOperation(l *lanes, peer *welcome) (operation, hixl.SendWR) {
	r, wr := e.atomicRequest(l, peer)
	return &faaOp{results: r, remote: peer.Dst, last: make([]uint64, len(l.qps))}, wr
}

// casOp counts a counter of its own per lane up with compare-and-swap: message
// n expects the start plus n and so must find exactly that.
type casOp struct {
	results
	remote remoteMemory
	base   []uint64 // value before message 0, a lane
}

func (o *casOp) build(wr *hixl.SendWR, lane int, n uint64, _, _ int) {
	wr.SGE[0].Addr = o.address(lane, n)
	wr.RemoteAddr = o.remote.Addr + uint64(lane*slotAlign)
	wr.Compare, wr.SwapAdd = o.base[lane]+n, o.base[lane]+n+1
}

func (o *casOp) completed(lane int, from, to uint64) error {
	for n := from; n < to; n++ {
		got, err := o.value(lane, n)
		if err != nil {
			return err
		}
		if want := o.base[lane] + n; got != want {
			return &MismatchError{Detail: fmt.Sprintf("message %d of queue pair %d: original value want %#x, got %#x", n, lane, want, got)}
		}
	}
	return nil
}

// begin starts a round: sent are the messages of each lane before it.
func (o *casOp) begin(key uint64, sent []uint64) {
	for lane, n := range sent {
		o.base[lane] = counterBase(key, lane) - n
	}
}

func (o *casOp) end() error { return nil }

// faaOp adds 1 to one counter from all lanes. Each value from the start on must
// come back exactly once, and to each lane in rising order.
type faaOp struct {
	results
	remote remoteMemory
	base   uint64
	seen   []uint64 // a bit for each value
	last   []uint64 // one more than the newest value, a lane
	posted uint64   // in this round
}

func (o *faaOp) build(wr *hixl.SendWR, lane int, n uint64, _, _ int) {
	wr.SGE[0].Addr = o.address(lane, n)
	wr.RemoteAddr, wr.SwapAdd = o.remote.Addr, 1
	o.posted++
}

func (o *faaOp) completed(lane int, from, to uint64) error {
	for n := from; n < to; n++ {
		found, err := o.value(lane, n)
		if err != nil {
			return err
		}
		v := found - o.base
		if v >= o.posted || v < o.last[lane] || !o.mark(v) {
			return &MismatchError{Detail: fmt.Sprintf(
				"message %d of queue pair %d: original value is the start plus %d, which came before or cannot be, with %d posted", n, lane, int64(v), o.posted)}
		}
		o.last[lane] = v + 1
	}
	return nil
}

// mark notes a value, less than posted, and reports whether it is new.
func (o *faaOp) mark(v uint64) bool {
	for v/64 >= uint64(len(o.seen)) {
		o.seen = append(o.seen, make([]uint64, max(1<<16, len(o.seen)))...)
	}
	bit := uint64(1) << (v % 64)
	fresh := o.seen[v/64]&bit == 0
	o.seen[v/64] |= bit
	return fresh
}

func (o *faaOp) begin(key uint64, _ []uint64) {
	o.base, o.posted = counterBase(key, 0), 0
	clear(o.seen)
	clear(o.last)
}

// end checks that the values seen are the first ones, without a gap.
func (o *faaOp) end() error {
	for v := range o.posted {
		if v/64 >= uint64(len(o.seen)) || o.seen[v/64]>>(v%64)&1 == 0 {
			return &MismatchError{Detail: fmt.Sprintf("no FETCH_ADD returned the start plus %d, of %d", v, o.posted)}
		}
	}
	return nil
}
