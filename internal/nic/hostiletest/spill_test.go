package hostiletest

import (
	"bytes"

	"github.com/gohixl/hixl/roce/wr"
)

// spill is the one thing that an unsealed packet may do: where its place follows
// from the connection's own state, the middle and end of a message under way and
// READ responses, its payload may be there already when the check fails. The
// packet that is due overwrites it, and nothing is told of it.
func (c *conn) spill(p *packet) {
	s, k, n := &c.resp, kindOf(p.op), uint64(len(p.payload))
	if c.failed || n == 0 {
		return
	}
	switch {
	case k.imm || k.inv:
	case s.in.send && k.send && p.psn == s.psn && s.got+n <= s.recv.capacity():
		off := s.got
		for _, part := range s.recv.parts {
			if off >= part.n {
				off -= part.n
				continue
			}
			take := min(part.n-off, n)
			c.w.spill(part.r.at(part.off+off, take), p.payload[uint64(len(p.payload))-n:][:take], part.r)
			n, off = n-take, 0
			if n == 0 {
				return
			}
		}
	case s.in.write && k.write && p.psn == s.psn && n <= s.length-s.got && s.into != nil:
		c.w.spill(s.into.at(s.at+s.got, n), p.payload, s.into)
	case len(c.req.open) > 0 && c.req.open[0].Op == wr.OpRead && p.psn == c.req.psn(c.req.una) && c.req.una < c.req.sent:
		r := &c.req.open[0]
		if off := (c.req.una - r.first) * uint64(c.mtu); off+n <= r.length {
			c.w.spill(r.local.at(r.off+off, n), p.payload, r.local)
		}
	}
}

// spill remembers bytes of a memory that may be those of a packet by now.
func (w *world) spill(want, payload []byte, r *region) {
	if r.mem.late == nil {
		w.spilt = append(w.spilt, spilt{want, payload})
	}
}

type spilt struct{ want, payload []byte }

// mop takes over what was spilt, where it was.
func (w *world) mop() {
	have := w.host.host.Bytes()
	for _, s := range w.spilt {
		at := cap(w.host.want) - cap(s.want) // want is a part of it, to the end
		if bytes.Equal(have[at:at+len(s.want)], s.payload) {
			copy(s.want, s.payload)
		}
	}
	w.spilt = w.spilt[:0]
}
