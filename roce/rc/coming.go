package rc

import "github.com/gohixl/hixl/roce/wr"

// Coming returns how many bytes the peer surely has yet to send, as far as that is
// known: the rest of the WRITE under way, whose length came with its first packet, or
// of the answer to the READ that is answered now.
func (c *RC) Coming() uint64 {
	if c.common.failed {
		return 0
	}
	return max(c.resp.coming(), c.req.coming())
}

func (s *responder) coming() uint64 {
	if s.fault.set || s.msg.kind != msgWrite {
		return 0
	}
	return s.msg.length - s.msg.received
}

func (r *requester) coming() uint64 {
	if r.una >= r.send {
		return 0
	}
	w := r.q.At(r.ack)
	if w.Op != wr.OpRead {
		return 0
	}
	from, to := r.una-w.First, min(r.send, w.End())-w.First
	return min(to*r.c.common.mtu, uint64(w.Length)) - from*r.c.common.mtu
}
