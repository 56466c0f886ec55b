package hostiletest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport/sim"
)

// step throws a packet or a few, after the application may have done something.
func (w *loose) step() {
	rng := w.rng
	for _, e := range w.ends {
		if e.failed && rng.IntN(4) == 0 {
			e.revive()
		}
		if len(e.queue.list) < 4 && rng.IntN(2) == 0 {
			e.post()
		}
	}
	if rng.IntN(500) == 0 {
		w.live.exercise()
	}
	w.begin(false)
	n := 1
	if !w.link.sockets && rng.IntN(4) == 0 {
		n = 2 + rng.IntN(6)
	}
	for range n {
		w.fire(w.aimAt(pick(rng, w.ends...)))
		if w.lately {
			break // what comes behind late memory depends on when
		}
	}
	w.flush()
}

// post posts a receive; for datagrams mostly one with room for the header.
func (e *looseEnd) post() {
	w, rng := e.w, e.w.rng
	w.id++
	r := &receive{id: w.id}
	from := w.named["open"]
	if e.pd == 1 {
		from = w.named["foreign"]
	} else if rng.IntN(4) == 0 {
		from = w.named["late"]
	}
	for range rng.IntN(4) {
		n := w.size(min(e.mtu, 256))
		if e.kind == qp.UD && rng.IntN(4) > 0 {
			n += 40
		}
		p := part{r: from, n: min(uint64(n), from.size)}
		p.off = rng.Uint64N(from.size - p.n + 1)
		if p.n > 0 {
			r.parts = append(r.parts, p)
		}
	}
	r.parts = disjoint(r.parts)
	var sge []mr.SGE
	for _, p := range r.parts {
		sge = append(sge, p.r.real.SGE(p.off, uint32(p.n)))
	}
	require.NoError(w.t, e.q.PostRecv([]qp.RecvWR{{ID: r.id, SGE: sge}}))
	if e.failed {
		e.received(cq.Completion{WRID: r.id, Status: cq.StatusFlushed})
		return
	}
	e.queue.list = append(e.queue.list, r)
}

// aimAt makes a datagram for a queue pair.
func (w *loose) aimAt(e *looseEnd) shot {
	rng := w.rng
	switch rng.IntN(30) {
	case 0:
		s := shot{from: hostStranger + rng.IntN(numHosts-hostStranger), b: w.bytes(1 + rng.IntN(80)), about: "noise"}
		return w.seal(s)
	case 1:
		return w.atLive()
	case 2:
		return w.recorded(e.conn)
	}
	d := e.next()
	for range pick(rng, 0, 0, 0, 0, 1, 1, 2, 3) {
		e.change(d)
	}
	if e.kind == qp.UD {
		e.peer = hostStranger + rng.IntN(numHosts-hostStranger)
	}
	return e.load(d)
}

// next is a packet that fits.
func (e *looseEnd) next() *draft {
	w, rng := e.w, e.w.rng
	if e.kind == qp.UD {
		n := w.size(256)
		if e.held != nil && e.held.capacity() >= 40 && rng.IntN(2) == 0 { // to the very end
			n = min(int(e.held.capacity())-40, e.mtu)
		}
		d := e.draft(pick[byte](rng, 0x64, 0x65), rng.Uint32(), min(n, e.mtu))
		d.p.DETH = roce.DETH{QKey: e.qkey, SrcQP: roce.QPN(rng.Uint32() & mask24)}
		d.p.Imm, d.p.SE = rng.Uint32(), rng.IntN(4) == 0
		return d
	}
	m, d := &e.msg, (*draft)(nil)
	switch {
	case !m.open:
		d = e.open()
	case m.send && e.room() > e.mtu && rng.IntN(3) > 0:
		d = e.draft(opSendMiddle, e.expect, e.mtu)
	case m.send:
		d = e.draft(pick[byte](rng, opSendLast, opSendLastImm), e.expect, max(1, e.fit(1+rng.IntN(e.mtu))))
	case m.length-m.got > uint64(e.mtu):
		d = e.draft(opWriteMiddle, e.expect, e.mtu)
	default:
		d = e.draft(pick[byte](rng, opWriteLast, opWriteLastImm), e.expect, int(m.length-m.got))
	}
	d.p.Opcode |= 0x20
	d.p.Imm, d.p.SE = rng.Uint32(), rng.IntN(4) == 0
	return d
}

// room is how much the receive that is held, or the next, takes still.
func (e *looseEnd) room() int {
	switch {
	case e.held != nil:
		return int(e.held.capacity() - e.msg.got)
	case len(e.queue.list) > 0:
		return int(e.queue.list[0].capacity())
	}
	return 0
}

// fit cuts n to that, mostly.
func (e *looseEnd) fit(n int) int {
	if e.w.rng.IntN(20) == 0 {
		return n
	}
	return min(n, e.room())
}

// open begins a message.
func (e *looseEnd) open() *draft {
	w, rng := e.w, e.w.rng
	n := w.size(e.mtu)
	if rng.IntN(2) == 0 {
		if n = e.fit(n); n > e.mtu {
			return e.draft(opSendFirst, e.expect, e.mtu)
		}
		return e.draft(pick[byte](rng, opSendOnly, opSendOnlyImm), e.expect, n)
	}
	d := e.draft(pick[byte](rng, opWriteOnly, opWriteOnlyImm), e.expect, min(n, e.mtu))
	if n > e.mtu {
		d.p.Opcode = opWriteFirst
	}
	e.aim(d, n)
	return d
}

// change makes something wrong.
func (e *looseEnd) change(d *draft) {
	rng := e.w.rng
	switch rng.IntN(6) {
	case 0:
		d.about += " opcode"
		d.p.Opcode = roce.Opcode(pick(rng, 0x20|byte(rng.IntN(12)), 0x64, 0x65, byte(rng.Uint32())))
		return
	case 1:
		d.about += " Q_Key"
		d.p.DETH.QKey = pick(rng, d.p.DETH.QKey^1, 0, e.qkey|1<<31, 0x80010000, rng.Uint32())
		return
	}
	m := pick(rng, mutations...)
	if m.name == "QPN" {
		d.about += " QPN"
		d.p.DestQP = roce.QPN(pick(rng, 0, 1, mask24, rng.Uint32()&mask24, e.qpn^1))
		return
	}
	m.do(e.conn, &d.p)
	d.about += " " + m.name
}

// finish checks that the NIC is as good as new.
func (w *loose) finish() {
	for _, e := range w.ends {
		e.q.Close()
	}
	w.world.finish(1)
}

// loosePackets is how many packets TestHostileLoose throws.
const loosePackets = defaultPackets / 5

// TestHostileLoose throws packets at unreliable connections and datagram queue
// pairs. What is from a wrong address, badly sealed, without the Q_Key, or has no
// right to the memory changes nothing; the rest does what the model says, to the
// last byte; nothing is ever answered, and the honest connection works throughout.
func TestHostileLoose(t *testing.T) {
	seen := newTally()
	for seed := uint64(1); seed <= loosePackets/perWorld; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newLoose(t, seed, simulated(t, sim.Config{Seed: seed, HideHeaders: seed%3 == 0}, seed%5 == 0), seen)
			for w.packets < perWorld {
				w.step()
			}
			w.finish()
		})
		if !ok {
			t.Fatalf("replay: go test ./internal/nic/hostiletest -run TestHostileLoose/%d", seed)
		}
	}
	t.Logf("completions %v", seen.status)
	for _, st := range []cq.Status{cq.StatusSuccess, cq.StatusLocalLength, cq.StatusFlushed} {
		require.NotZero(t, seen.status[st], "no completion with status %v", st)
	}
	require.Greater(t, seen.status[cq.StatusSuccess], uint64(loosePackets/20))
}

// A smaller run over real sockets.
func TestHostileLooseSockets(t *testing.T) {
	deadline := time.Now().Add(time.Minute)
	w := newLoose(t, 1, overSockets(t), newTally())
	for w.packets < defaultSocketPackets/4 && time.Now().Before(deadline) {
		w.step()
	}
	w.finish()
}
