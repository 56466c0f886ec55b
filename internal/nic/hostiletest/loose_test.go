package hostiletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// loose is a world whose NIC has queue pairs that acknowledge nothing, unreliable
// connections and datagrams, with a model of each; and a reliable connection with
// an honest NIC, which must keep working.
type loose struct {
	*world
	ends []*looseEnd
}

// looseEnd is one of those queue pairs. Of conn it has what drafts and completions
// need; the halves of a reliable connection are not used.
type looseEnd struct {
	*conn
	kind   qp.Type
	qkey   uint32
	expect uint32
	msg    looseMessage
	held   *receive // taken, and not completed
}

// looseMessage is the one that an unreliable connection is receiving.
type looseMessage struct {
	open, send  bool
	got, length uint64
	into        *region
	at          uint64
}

func newLoose(t testing.TB, seed uint64, l link, seen *tally) *loose {
	w := &loose{world: newWorld(t, seed, l, 0, seen)}
	for i := range 6 {
		w.add(pick(w.rng, qp.UC, qp.UC, qp.UD), i)
	}
	w.add(qp.UC, 6)
	w.add(qp.UD, 7)
	return w
}

func (w *loose) add(kind qp.Type, i int) {
	e := &looseEnd{conn: &conn{w: w.world, queue: &receives{}}, kind: kind}
	q, err := w.nic.CreateQP(qp.Config{Type: kind, PD: w.pds[i%2], SendSink: &e.sends, RecvSink: &e.recvs, MaxRecvWR: 16})
	require.NoError(w.t, err)
	e.q, e.qpn, e.pd = q, uint32(q.QPN()), i%2
	w.ends = append(w.ends, e)
	e.connect()
}

// connect takes the queue pair from RESET to RTS.
func (e *looseEnd) connect() {
	w, rng := e.w, e.w.rng
	e.failed, e.msg, e.held, e.queue.list = false, looseMessage{}, nil, nil
	e.peer = hostPeers + rng.IntN(numHosts-hostPeers)
	e.qkey = pick(rng, 0x11111111, rng.Uint32()&^(1<<31))
	e.expect = uint32(pick(rng, 0xFFFFFE, rng.IntN(1<<24)))
	e.access = pick(rng, qp.RemoteAccess, qp.RemoteAccess, mr.RemoteWrite, mr.RemoteRead)
	mtu := pick(rng, roce.MTU256, roce.MTU256, roce.MTU512)
	e.mtu = mtu.Bytes()
	if e.kind == qp.UD {
		e.mtu = w.nic.MTU().Bytes()
		e.modify(&qp.Attr{State: qp.Init, Port: 1, QKey: e.qkey}, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskQKey)
		e.modify(&qp.Attr{State: qp.RTR}, qp.MaskState)
	} else {
		e.modify(&qp.Attr{State: qp.Init, Port: 1, Access: e.access}, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess)
		e.modify(&qp.Attr{
			State: qp.RTR, PathMTU: mtu, DestQPN: 0x77, RecvPSN: roce.PSN(e.expect),
			AV: qp.AddressVector{Addr: w.hosts[e.peer].addr, SmallIDs: w.link.fixedID || rng.IntN(2) == 0},
		}, qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskAV)
	}
	e.modify(&qp.Attr{State: qp.RTS}, qp.MaskState|qp.MaskSendPSN)
	e.state = qp.RTS
}

// revive connects a failed queue pair anew, after more shots at it.
func (e *looseEnd) revive() {
	e.modify(&qp.Attr{State: qp.Reset}, qp.MaskState)
	e.connect()
}

// judge applies §1.13 in its order, and reports whether the packet counts.
func (w *loose) judge(s *shot) (*looseEnd, *packet) {
	p, why := parse(s.b)
	if why != 0 {
		return nil, nil
	}
	i := slices.IndexFunc(w.ends, func(e *looseEnd) bool { return e.qpn == p.qpn })
	if i < 0 {
		return nil, nil
	}
	e, class := w.ends[i], byte(1)
	if e.kind == qp.UD {
		class = 3
	}
	switch {
	case p.op>>5 != class, e.state != qp.RTS, p.pkey&0x7FFF != 0x7FFF:
		return nil, nil
	case e.kind == qp.UC && s.from != e.peer, !e.sealed(s):
		return nil, nil
	}
	return e, &p
}

// fire adds a packet to the batch and tells the model.
func (w *loose) fire(s shot) {
	w.world.fire(s)
	e, p := w.judge(&s)
	switch {
	case e == nil || e.failed:
	case e.kind == qp.UD:
		e.datagram(p, &s)
	default:
		e.unreliable(p)
	}
}

// flush sends the batch, lets the NIC work, and compares.
func (w *loose) flush() {
	w.send()
	w.settle() // fails when the NIC answers
	var faults []string
	note := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, e := range w.ends {
		e.compareCompletions("receive", &e.recvs, &e.wantRecvs, note)
		if e.failed {
			e.state = qp.Err
		}
		if have := e.q.State(); have != e.state {
			note("%v: is in %v", e.conn, have)
		}
	}
	if !w.host.right() {
		note("memory differs: %s", difference(w.host.want, w.host.host.Bytes()))
	}
	if w.lately && !w.late.right() {
		note("late memory differs")
	}
	if len(faults) > 0 {
		w.t.Fatalf("step %d: %s\nlast packets:\n%s", w.steps, strings.Join(faults, "\n"), strings.Join(w.diary, "\n"))
	}
	w.steps++
}

// unreliable is §4.15: a gap loses the message in progress, and so does everything
// that is wrong with it; the receive that it has taken serves the next.
func (e *looseEnd) unreliable(p *packet) {
	k := kindOf(p.op & 0x1F)
	if p.psn != e.expect || k.first || !e.msg.open {
		e.msg = looseMessage{}
		if !k.first {
			return
		}
	}
	e.expect = (p.psn + 1) & mask24
	m := e.msg
	e.msg = looseMessage{}
	switch {
	case !k.first && k.send != m.send:
		return
	case k.write && e.access&mr.RemoteWrite == 0, !p.rightLength(e.mtu):
		return
	}
	if k.takes() && e.held == nil {
		if e.held = e.queue.take(); e.held == nil {
			return
		}
	}
	if k.first {
		m = looseMessage{open: true, send: k.send, length: uint64(p.length)}
		if k.write && p.length > 0 {
			var ok bool
			if m.into, m.at, ok = e.w.reach(e.pd, p.rkey, p.va, m.length, mr.RemoteWrite); !ok {
				return
			}
		}
	}
	if e.placed(&m, k, p) {
		e.msg = m
	}
}

// placed puts the payload where it belongs and reports whether the message goes on.
func (e *looseEnd) placed(m *looseMessage, k kind, p *packet) bool {
	n := uint64(len(p.payload))
	if k.send {
		if m.got+n > e.held.capacity() {
			e.received(cq.Completion{WRID: e.held.id, Status: cq.StatusLocalLength})
			e.held = nil
			e.fail(cq.StatusFlushed, cq.StatusFlushed)
			return false
		}
		e.touches(e.held.late())
		e.held.scatter(m.got, p.payload)
	} else {
		left := m.length - m.got
		if n > left || k.last != (n == left) {
			return false
		}
		if n > 0 {
			e.touches(m.into.mem.late != nil)
			copy(m.into.at(m.at+m.got, n), p.payload)
		}
	}
	m.got += n
	if k.last && e.held != nil && (k.send || k.imm) {
		op := cq.OpRecv
		if k.write {
			op = cq.OpRecvWriteImm
		}
		e.complete(op, p, k.imm, m.got, 0)
	}
	return !k.last
}

// complete is the success of the receive that is held.
func (e *looseEnd) complete(op cq.Opcode, p *packet, imm bool, n uint64, flags cq.Flags) {
	wc := cq.Completion{WRID: e.held.id, Opcode: op, ByteLen: uint32(n), Flags: flags}
	if imm {
		wc.Flags, wc.Imm = wc.Flags|cq.WithImm, p.imm
	}
	if p.se {
		wc.Flags |= cq.Solicited
	}
	e.received(wc)
	e.held = nil
}

// datagram is §4.16: every packet by itself, in a receive that begins with the
// network header (§1.10). What does not fit leaves the receive posted.
func (e *looseEnd) datagram(p *packet, s *shot) {
	if p.qkey != e.qkey || !p.rightLength(e.mtu) {
		return
	}
	if e.held == nil {
		if e.held = e.queue.take(); e.held == nil {
			return
		}
	}
	whole := append(e.network(s), p.payload...)
	if uint64(len(whole)) > e.held.capacity() {
		return
	}
	e.touches(e.held.late())
	e.held.scatter(0, whole)
	e.complete(cq.OpRecv, p, p.op == 0x65, uint64(len(whole)), cq.GRH)
}

// network is the header area: IPv6's header, or IPv4's behind 20 zero bytes.
func (e *looseEnd) network(s *shot) []byte {
	src, dst, n := e.w.hosts[s.from].addr, e.w.link.addr(hostNIC), uint16(8+len(s.b))
	if src.Is6() {
		h := be.AppendUint16([]byte{0x60 | s.tos>>4, s.tos << 4, 0, 0}, n)
		return append(append(append(h, 17, 64), src.AsSlice()...), dst.AsSlice()...)
	}
	id := s.id
	if e.w.link.hidden {
		id = 0
	}
	h := append(make([]byte, 20), 0x45, s.tos)
	h = be.AppendUint16(be.AppendUint16(h, 20+n), id)
	h = append(append(append(h, 0x40, 0, 64, 17, 0, 0), src.AsSlice()...), dst.AsSlice()...)
	sum := uint32(0)
	for i := 20; i < 40; i += 2 {
		sum += uint32(be.Uint16(h[i:]))
	}
	sum = sum&0xFFFF + sum>>16
	sum = sum&0xFFFF + sum>>16
	be.PutUint16(h[30:], ^uint16(sum))
	return h
}
