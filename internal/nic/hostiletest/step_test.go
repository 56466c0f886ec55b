package hostiletest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// step throws a packet, sometimes a few in one batch, after the application may
// have done something.
func (w *world) step() {
	if w.rng.IntN(3) == 0 {
		w.control()
	}
	w.revive()
	n := 1
	if !w.link.sockets && w.rng.IntN(8) == 0 {
		n = 2 + w.rng.IntN(6)
	}
	w.begin(n > 1)
	c := w.target()
	for range n {
		if w.rng.IntN(8) == 0 {
			c = w.target()
		}
		s, d := w.aimAt(c)
		if w.group && !w.admissible(&s) {
			continue
		}
		before := c.resp.psn
		w.fire(s)
		if d != nil && c.resp.psn != before && d.p.Opcode.IsRequest() {
			if len(c.past) >= 8 {
				c.past = c.past[1:]
			}
			c.past = append(c.past, *d)
		}
	}
	w.flush()
}

// aimAt makes a datagram for a connection.
func (w *world) aimAt(c *conn) (shot, *draft) {
	rng := w.rng
	var d *draft
	switch k := rng.IntN(100); {
	case k < 44:
		d = c.nextRequest()
	case k < 72:
		d = c.nextResponse()
	case k < 82:
		d = c.repeat()
	case k < 84:
		d = c.draft(opCNP, 0, 0)
		d.p.BECN = true
	case k < 86:
		return w.atLive(), nil
	case k < 88:
		s := shot{from: hostStranger + rng.IntN(numHosts-hostStranger), b: w.bytes(1 + rng.IntN(80)), about: "noise"}
		return w.seal(s), nil
	default:
		return w.recorded(c), nil
	}
	c.mutate(d, pick(rng, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3))
	return c.load(d), d
}

// atLive makes a datagram for the live connection that must not harm it: not from
// its peer, or not sealed, or with a PSN that is not the expected one.
func (w *world) atLive() shot {
	c := w.live.model
	d := c.draft(byte(w.rng.IntN(0x20)), w.live.expects, w.rng.IntN(64))
	if !d.p.Opcode.Known() {
		d.p.Opcode = opAck
	}
	d.about = "at the live connection"
	d.p.RETH = roce.RETH{VA: w.live.ends[0].r.Addr(), RKey: w.live.ends[0].r.RKey(), Len: uint32(len(d.p.Payload))}
	d.p.Atomic = roce.AtomicETH{VA: d.p.RETH.VA, RKey: d.p.RETH.RKey}
	d.p.AckReq, d.p.AETH.Syndrome = true, roce.Syndrome(w.rng.Uint32())
	s := shot{from: hostHonest, port: uint16(w.rng.Uint32()), about: d.about}
	if w.rng.IntN(2) == 0 {
		s.from = hostStranger + w.rng.IntN(numHosts-hostStranger)
	} else {
		d.p.PSN = (d.p.PSN + roce.PSN(pick(w.rng, 1, 2, mask24, mask24-1, 1<<22, 1+w.rng.IntN(mask24)))) & mask24
	}
	s.b = d.p.Append(nil)
	return w.seal(s)
}

// admissible keeps out of a batch what would make its outcome a matter of where
// the NIC cuts it: with bytes on their way into late memory only SENDs and WRITEs,
// and after an error only more requests.
func (w *world) admissible(s *shot) bool {
	p, why := parse(s.b)
	if why != 0 {
		return true
	}
	c := w.byQPN[p.qpn]
	if c == nil {
		return true
	}
	message := kindOf(p.op).message()
	switch {
	case s.from == c.peer && p.pkey&0x7FFF == 0x7FFF && !c.sealed(s): // it may spill
		return false
	case w.lately && !message, kindOf(p.op).inv: // what it revokes may be another's READ of the batch
		return false
	case c.failed && c.state != qp.Err:
		return !w.lately && p.request() && s.tos&3 != 3 && s.from == c.peer && c.sealed(s) && p.pkey&0x7FFF == 0x7FFF && p.op>>5 == 0
	case w.reader != nil && w.reader != c: // its READs are fetched when the batch has ended
		return false
	case p.request():
		return true
	}
	return !c.resp.asked || c.req.sent == c.req.next // else more may have been sent by now
}

// revive connects failed queue pairs anew, once they have been shot at some more.
func (w *world) revive() {
	for _, c := range w.conns {
		if c.failed && c.spent > w.rng.IntN(8) {
			c.recycle()
			c.busy()
		}
	}
}

// busy gives a new connection something to do.
func (c *conn) busy() {
	w := c.w
	w.begin(false)
	for range w.rng.IntN(4) {
		if c.state == qp.RTS {
			c.postSend()
		}
		if len(c.queue.list) < 8 {
			c.postReceive()
		}
	}
	w.settle()
	w.compare()
}

// control is the application: it posts, connects, quiesces, revokes.
func (w *world) control() {
	rng := w.rng
	w.begin(false)
	c := pick(rng, w.conns...)
	switch rng.IntN(12) {
	case 0, 1, 2:
		if len(c.queue.list) < 8 {
			c.postReceive()
		}
	case 3, 4, 5, 6:
		if (c.state == qp.RTS || c.state == qp.SQD || c.state == qp.Err) && len(c.req.open) < 12 {
			c.postSend()
		}
	case 7:
		c.changeState()
	case 8:
		if c.failed {
			c.recycle()
		}
	case 9:
		w.pass()
	case 10:
		w.changeRegions()
	case 11:
		w.changeConns(c)
	}
	w.settle()
	w.compare()
}

func (c *conn) changeState() {
	switch c.state {
	case qp.RTR:
		c.ready()
	case qp.RTS:
		c.modify(&qp.Attr{State: qp.SQD}, qp.MaskState)
		c.state, c.req.quiet = qp.SQD, true
	case qp.SQD:
		c.modify(&qp.Attr{State: qp.RTS}, qp.MaskState)
		c.state, c.req.quiet = qp.RTS, false
	default:
	}
}

func (w *world) changeRegions() {
	switch w.rng.IntN(3) {
	case 0:
		w.renew(w.named["stale"])
	case 1:
		if r := w.named["stale"]; r.real != nil {
			w.revoke(r)
		}
	default:
		w.renew(w.named["revocable"])
	}
}

// changeConns uses the live connection, or gives the NIC a queue pair less and a
// new one.
func (w *world) changeConns(c *conn) {
	switch w.rng.IntN(8) {
	case 0:
		w.destroy(c)
		w.addConn()
	case 1:
		if !c.failed {
			c.modify(&qp.Attr{State: qp.Err}, qp.MaskState)
			c.failed = true
			c.failByCommand()
		}
	default:
		w.live.exercise()
	}
}

func (c *conn) failByCommand() { c.fail(cq.StatusFlushed, cq.StatusFlushed) }

// destroy closes a queue pair: its number leads nowhere any more.
func (w *world) destroy(c *conn) {
	w.pastWantInError += c.want.inError
	c.q.Close()
	delete(w.byQPN, c.qpn)
	w.conns = slices.DeleteFunc(w.conns, func(k *conn) bool { return k == c })
}

// postSend posts a work request.
func (c *conn) postSend() {
	w, rng, s := c.w, c.w.rng, &c.req
	op := wr.Op(rng.IntN(int(wr.OpAtomicWrite) + 1))
	if rng.IntN(4) == 0 {
		op = wr.OpRead
	}
	if op.TakesRead() && s.depth == 0 {
		op = wr.OpWrite
	}
	w.id++
	r := request{SendWR: qp.SendWR{
		ID: w.id, Op: op, RemoteAddr: rng.Uint64() &^ 7, RKey: rng.Uint32(), Imm: rng.Uint32(), InvKey: rng.Uint32(), SwapAdd: rng.Uint64(),
	}}
	if rng.IntN(3) > 0 {
		r.Flags = wr.Signaled
	}
	late := ""
	if rng.IntN(5) == 0 {
		late = "late "
	}
	switch {
	case op == wr.OpAtomicWrite:
		r.Inline, r.length = w.bytes(8), 8
	case op.TakesRead():
		r.local, r.length = w.named[late+"results"], uint64(min(w.size(c.mtu), 2048))
		if op != wr.OpRead {
			r.length = 8
			if op == wr.OpCmpSwap {
				r.Compare = rng.Uint64()
			}
		}
	default:
		r.length = uint64(min(w.size(c.mtu), 2048))
		if r.length > 0 && r.length <= 256 && rng.IntN(3) == 0 {
			r.Inline = w.bytes(int(r.length))
		} else {
			r.local = w.named[late+"source"]
		}
	}
	if r.local != nil && r.length > 0 {
		r.off = rng.Uint64N(r.local.size-r.length+1) &^ 7
		r.SGE = []mr.SGE{r.local.real.SGE(r.off, uint32(r.length))}
	}
	require.NoError(w.t, c.q.PostSend([]qp.SendWR{r.SendWR}))
	if c.failed {
		c.sent(cq.Completion{WRID: r.ID, Status: cq.StatusFlushed})
		return
	}
	r.first, r.n = s.next, max(1, (r.length+uint64(c.mtu)-1)/uint64(c.mtu))
	s.next = r.end()
	s.open = append(s.open, r)
}
