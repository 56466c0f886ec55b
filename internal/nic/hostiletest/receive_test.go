package hostiletest

import (
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
)

// receives is a receive queue, of one queue pair or shared.
type receives struct {
	list []*receive
	srq  *qp.SRQ
}

func (q *receives) take() *receive {
	if len(q.list) == 0 {
		return nil
	}
	r := q.list[0]
	q.list = q.list[1:]
	return r
}

// postReceive posts a receive of some size, in up to three pieces.
func (c *conn) postReceive() {
	w := c.w
	w.id++
	r := &receive{id: w.id}
	var sge []mr.SGE
	from := w.named["open"]
	if w.rng.IntN(4) == 0 {
		from = w.named["late"]
	}
	for range w.rng.IntN(4) {
		p := part{r: from, n: uint64(w.size(c.mtu))}
		p.n = min(p.n, from.size)
		p.off = w.rng.Uint64N(from.size - p.n + 1)
		if p.n > 0 {
			r.parts = append(r.parts, p)
		}
		sge = append(sge, p.r.real.SGE(p.off, uint32(p.n)))
	}
	r.parts = disjoint(r.parts)
	if len(r.parts) != len(sge) {
		sge = sge[:0]
		for _, p := range r.parts {
			sge = append(sge, p.r.real.SGE(p.off, uint32(p.n)))
		}
	}
	req := qp.RecvWR{ID: r.id, SGE: sge}
	if c.shared {
		require.NoError(w.t, c.queue.srq.Post(req))
	} else {
		require.NoError(w.t, c.q.PostRecv([]qp.RecvWR{req}))
	}
	if c.failed && !c.shared {
		c.received(cq.Completion{WRID: r.id, Status: cq.StatusFlushed})
		return
	}
	c.queue.list = append(c.queue.list, r)
}

// disjoint drops parts that overlap earlier ones: what two pieces of one receive
// leave in the same byte is nobody's promise.
func disjoint(parts []part) (out []part) {
	for _, p := range parts {
		ok := true
		for _, q := range out {
			ok = ok && (p.off+p.n <= q.off || q.off+q.n <= p.off)
		}
		if ok {
			out = append(out, p)
		}
	}
	return out
}

// receive is a posted receive: parts of regions, filled in order.
type receive struct {
	id    uint64
	parts []part
}

type part struct {
	r      *region
	off, n uint64
}

func (r *receive) capacity() (n uint64) {
	for _, p := range r.parts {
		n += p.n
	}
	return n
}

// scatter puts data at an offset of the message.
func (r *receive) scatter(off uint64, data []byte) {
	for _, p := range r.parts {
		if off >= p.n {
			off -= p.n
			continue
		}
		k := copy(p.r.at(p.off+off, p.n-off), data)
		data, off = data[k:], 0
	}
}

func (r *receive) late() bool {
	for _, p := range r.parts {
		if p.r.mem.late != nil {
			return true
		}
	}
	return false
}
