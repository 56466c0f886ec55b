package hostiletest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// Hosts of a world: the NIC under test, an honest NIC, a stranger whose address
// no queue pair knows, and peers that the test plays.
const (
	hostNIC = iota
	hostHonest
	hostStranger
	hostPeers
	numHosts = hostPeers + 3
)

// world is a NIC under fire and everything that is known about it.
type world struct {
	t    testing.TB
	seed uint64
	rng  *rand.Rand
	link link

	nic    *nic.NIC
	honest *nic.NIC
	conn   transport.Conn
	hosts  [numHosts]*hostAt
	live   *pair
	conns  []*conn
	byQPN  map[uint32]*conn

	pds        []*mr.PD
	host, late *memory
	regions    []*region
	byKey      map[uint32]*region
	named      map[string]*region
	srq        *receives

	id      uint64
	peerQPN uint32
	steps   int // batches
	packets int // thrown
	toNIC   uint64
	fromNIC uint64

	// Of the batch.
	group, lately bool
	reader        *conn // has READs to answer
	spilt         []spilt
	pending       []shot
	started       mono.Time

	dropped                      [nic.NumDrops]uint64
	either                       uint64 // dropped for one of two reasons
	pastInError, pastWantInError uint64
	diary                        []string
	seen                         *tally
}

// shot is one UDP datagram for the NIC.
type shot struct {
	from     int
	port, id uint16
	tos      uint8
	b        []byte
	about    string
}

// newWorld makes a world of n connections with the test.
func newWorld(t testing.TB, seed uint64, l link, conns int, seen *tally) *world {
	if tt, ok := t.(*testing.T); ok {
		cryptotest.SetGlobalRandom(tt, seed)
	}
	w := &world{
		t: t, seed: seed, link: l, rng: rand.New(rand.NewPCG(seed, 0xbad)), byQPN: map[uint32]*conn{}, seen: seen,
		peerQPN: 0x100,
	}
	w.conn = l.open(l.addr(hostNIC))
	n, err := nic.Open(nic.Config{Conn: w.conn, Clock: l.now, MaxQPs: 64, MaxRegions: 64})
	require.NoError(t, err)
	w.nic = n
	for i := hostStranger; i < numHosts; i++ {
		w.hosts[i] = l.host(i)
	}
	w.makeMemory()
	srq, err := qp.NewSRQ(qp.SRQConfig{PD: w.pds[0], MaxWR: 64})
	require.NoError(t, err)
	w.srq = &receives{srq: srq}
	w.openHonest()
	w.live = w.newPair()
	for range conns {
		w.addConn()
	}
	w.collect()
	w.compare()
	return w
}

// addConn makes another queue pair and connects it.
func (w *world) addConn() {
	c := &conn{w: w, shared: w.rng.IntN(6) == 0}
	cfg := qp.Config{PD: w.pds[0], SendSink: &c.sends, RecvSink: &c.recvs, MaxSendWR: 16, MaxRecvWR: 16, MaxInline: 256}
	c.queue = &receives{}
	if c.shared {
		c.queue, cfg.SRQ = w.srq, w.srq.srq
	}
	q, err := w.nic.CreateQP(cfg)
	require.NoError(w.t, err)
	c.q, c.qpn = q, uint32(q.QPN())
	w.conns = append(w.conns, c)
	w.byQPN[c.qpn] = c
	c.connect()
}

// connect takes the queue pair from RESET to RTR, and mostly on to RTS, as
// somebody else each time.
func (c *conn) connect() {
	w, rng := c.w, c.w.rng
	w.peerQPN++
	c.peerQPN, c.peer = w.peerQPN, hostPeers+rng.IntN(numHosts-hostPeers)
	c.access = pick(rng, qp.RemoteAccess, qp.RemoteAccess, qp.RemoteAccess, mr.RemoteRead, mr.RemoteWrite, mr.Access(0), mr.RemoteAtomic|mr.RemoteWrite)
	mtu := pick(rng, roce.MTU256, roce.MTU256, roce.MTU512, roce.MTU1024)
	c.mtu = mtu.Bytes()
	first := uint32(pick(rng, 0, 0xFFFFF0+rng.IntN(16), rng.IntN(1<<24)))
	c.resp = responder{first: first, psn: first, rnrCode: byte(rng.IntN(32)), depth: pick(rng, 0, 1, 4, 8)}
	c.resp.newBatch()
	c.failed, c.past, c.spent, c.want, c.cnpNext = false, nil, 0, counts{}, 0
	c.req = requester{}
	c.modify(&qp.Attr{State: qp.Init, Port: 1, Access: c.access}, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess)
	c.modify(&qp.Attr{
		State: qp.RTR, PathMTU: mtu, DestQPN: roce.QPN(c.peerQPN), RecvPSN: roce.PSN(first),
		MaxDestRead: uint8(c.resp.depth), MinRNRTimer: c.resp.rnrCode,
		AV: qp.AddressVector{Addr: w.hosts[c.peer].addr, SmallIDs: w.link.fixedID || rng.IntN(2) == 0},
	}, qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV)
	c.state = qp.RTR
	if rng.IntN(4) > 0 {
		c.ready()
	}
}

// ready takes the queue pair to RTS. Its timeout is 0, never: time is not what is
// tested here.
func (c *conn) ready() {
	rng := c.w.rng
	c.req = requester{
		base: uint32(pick(rng, 0xFFFFFC, rng.IntN(1<<24))), depth: pick(rng, 0, 1, 4), rnrRetry: rng.IntN(8),
		nakAt: never, again: never,
	}
	s := &c.req
	s.rnrs = s.rnrRetry
	c.modify(&qp.Attr{
		State: qp.RTS, SendPSN: roce.PSN(s.base), RetryCount: uint8(rng.IntN(8)), RNRRetry: uint8(s.rnrRetry), MaxRead: uint8(s.depth),
	}, qp.MaskState|qp.MaskSendPSN|qp.MaskTimeout|qp.MaskRetryCount|qp.MaskRNRRetry|qp.MaskMaxRead)
	c.state = qp.RTS
}

func (c *conn) modify(a *qp.Attr, mask qp.AttrMask) {
	require.NoError(c.w.t, c.q.Modify(a, mask), "%v to %v", c, a.State)
}

// recycle resets a queue pair and connects it anew.
func (c *conn) recycle() {
	w := c.w
	w.pastInError += c.q.Stats().DroppedInError
	w.pastWantInError += c.want.inError
	c.modify(&qp.Attr{State: qp.Reset}, qp.MaskState)
	if !c.shared {
		c.queue.list = nil
	}
	c.connect()
}

// fire adds a packet to the batch and tells the model.
func (w *world) fire(s shot) {
	w.pending = append(w.pending, s)
	w.packets++
	if len(w.diary) >= 12 {
		w.diary = w.diary[1:]
	}
	note := s.about
	if p, why := parse(s.b); why == 0 {
		note += fmt.Sprintf(" %v psn %#x a %v va %#x rkey %#x len %d syndrome %#x, %d bytes, pad %d", roce.Opcode(p.op), p.psn, p.ackReq, p.va, p.rkey, p.length, p.syndrome, len(p.payload), p.pad)
	}
	w.diary = append(w.diary, fmt.Sprintf("%d: from %d: %s: %s", w.steps, s.from, note, hex.EncodeToString(s.b[:min(len(s.b), 44)])))
	c, p := w.judge(&s)
	if c == nil {
		return
	}
	w.mark(c, &s, p)
	switch {
	case p.op == opCNP:
		if c.failed {
			c.want.inError++
		} else {
			c.want.cnpReceived++
		}
	case p.request():
		c.request(p)
	default:
		before := c.failed
		c.response(p)
		c.mute = c.mute || c.failed && !before
	}
}

// mark is the CE mark: a CNP is owed, at most one every 50 µs (§7.1).
func (w *world) mark(c *conn, s *shot, p *packet) {
	if s.tos&3 != 3 || len(p.payload) == 0 || c.failed || c.cnpNext > w.started {
		return
	}
	c.cnpNext = w.started.Add(50 * time.Microsecond)
	c.replies = append(c.replies, reply{op: opCNP})
}

// judge applies §1.13 in its order. No connection: the packet is dropped, or meant
// for one that is not modelled.
func (w *world) judge(s *shot) (*conn, *packet) {
	p, why := parse(s.b)
	if why != 0 {
		w.drop(why)
		return nil, nil
	}
	c := w.byQPN[p.qpn]
	if c == nil {
		if c = w.liveConn(p.qpn); c == nil {
			w.drop(because(nic.DropNoQP))
			return nil, nil
		}
	}
	takes := c.state == qp.RTS || c.state == qp.SQD || c.state == qp.RTR && p.layout.dir != 'r'
	switch {
	case p.op>>5 != 0 && p.op != opCNP:
		why = because(nic.DropTransport)
	case !takes:
		c.spent++
		why = because(nic.DropState)
	case s.from != c.peer:
		why = because(nic.DropSource)
	case p.pkey&0x7FFF != 0x7FFF:
		why = because(nic.DropPKey)
	case !c.sealed(s):
		why = because(nic.DropICRC)
	}
	if why != 0 {
		if why == because(nic.DropICRC) {
			c.spill(&p)
		}
		w.drop(why)
		return nil, nil
	}
	if c == w.live.model { // only its own NIC knows what to expect
		return nil, nil
	}
	return c, &p
}

// sealed is the last rule of §1.13. Where the identification is hidden, the peer
// may have used any, or if it is one of ours, a small one.
func (c *conn) sealed(s *shot) bool {
	h := heading{c.w.hosts[s.from].addr, c.w.link.addr(hostNIC), s.port, s.id}
	switch {
	case !c.w.link.hidden:
		return h.sealed(s.b)
	case c.q.View().SmallIDs:
		return h.sealedBy(s.b, 127)
	}
	return h.sealedBy(s.b, 0xFFFF)
}

// drop counts a drop. The reference gives no order for a version that is not 0
// and headers that do not fit: either will do.
func (w *world) drop(why drops) {
	for d := range nic.NumDrops {
		if why == because(d) {
			w.dropped[d]++
			w.seen.drops[d]++
			return
		}
	}
	w.either++
}

// flush sends the batch, lets the NIC work, and compares.
func (w *world) flush() {
	if len(w.pending) == 0 {
		return
	}
	w.send()
	w.settle()
	w.compare()
	w.steps++
}

// send sends the batch.
func (w *world) send() {
	for i := range w.pending {
		s := &w.pending[i]
		tx := transport.Tx{Data: s.b, Dst: w.link.addr(hostNIC), SrcPort: s.port, ID: s.id, TOS: s.tos}
		_, err := w.hosts[s.from].conn.WriteBatch([]transport.Tx{tx})
		require.NoError(w.t, err)
		w.toNIC++
	}
	w.pending = w.pending[:0]
}

// begin starts a batch.
func (w *world) begin(group bool) {
	w.group, w.lately, w.reader = group, false, nil
	w.started = w.link.now()
}

// settle lets everything happen that can, late memory included.
func (w *world) settle() {
	if w.poll(); w.finishLate() {
		w.pass()
		return
	}
	w.collect()
}

// finishLate lets late memory finish and reports whether time has passed by that.
func (w *world) finishLate() (passed bool) {
	for w.late.late.Pending() > 0 {
		next := max(w.late.late.Next(), w.link.now())
		w.link.advance(next)
		w.late.late.Step(next)
		w.poll()
		passed = true
	}
	return passed
}

// pass lets so much time go by that every RNR timer has ended.
func (w *world) pass() {
	for _, c := range w.conns {
		c.req.waiting = false
	}
	w.link.advance(w.link.now().Add(time.Second))
	w.late.late.Step(w.link.now())
	w.poll()
	w.finishLate()
	w.collect()
}

// poll lets the NICs take all packets that were sent to them.
func (w *world) poll() {
	for {
		w.link.advance(w.link.now()) // delivers
		worked := w.nic.Poll(w.link.now())
		worked = w.honest.Poll(w.link.now()) || worked
		if worked {
			continue
		}
		if !w.link.sockets || w.conn.Stats().RxPackets >= w.toNIC+w.honest.Stats().TxPackets {
			return
		}
		runtime.Gosched()
	}
}

// collect takes what the NIC has sent.
func (w *world) collect() {
	for {
		w.link.advance(w.link.now())
		got := 0
		for i := hostStranger; i < numHosts; i++ {
			h := w.hosts[i]
			n, err := h.conn.ReadBatch(h.rx, false)
			require.NoError(w.t, err)
			for k := range h.rx[:n] {
				for j := range h.rx[k].Packets() {
					got++
					w.arrived(i, &h.rx[k], h.rx[k].Packet(j))
				}
			}
		}
		w.fromNIC += uint64(got)
		if got > 0 {
			continue
		}
		if !w.link.sockets || w.fromNIC+w.hosts[hostHonest].conn.Stats().RxPackets >= w.nic.Stats().TxPackets {
			return
		}
		w.poll()
		runtime.Gosched()
	}
}

// arrived checks a packet from the NIC and gives it to its connection.
func (w *world) arrived(at int, rx *transport.Rx, b []byte) {
	h := heading{rx.Src, w.hosts[at].addr, rx.SrcPort, rx.ID}
	if rx.Src != w.link.addr(hostNIC) || !h.sealed(b) && (rx.HaveID || !h.sealedBy(b, 127)) {
		w.t.Fatalf("host %d got a packet from %v that is not sealed: %x", at, rx.Src, b)
	}
	p, why := parse(b)
	var c *conn
	for _, k := range w.conns {
		if k.peer == at && k.peerQPN == p.qpn {
			c = k
		}
	}
	if why != 0 || c == nil {
		w.t.Fatalf("host %d got a packet for nobody: %x", at, b)
	}
	if pad := b[len(b)-icrcLen-int(p.pad) : len(b)-icrcLen]; !bytes.Equal(pad, make([]byte, len(pad))) {
		w.t.Fatalf("%v: sent pad bytes that are not 0: %x", c, b)
	}
	if p.request() {
		c.observe(&p)
		return
	}
	r := reply{op: p.op, psn: p.psn, msn: p.msn, syndrome: p.syndrome, original: p.original}
	if len(p.payload) > 0 {
		r.payload = append([]byte{}, p.payload...)
	}
	if p.op != opCNP && !p.rightLength(c.mtu) || p.op == opCNP && b[4] != 0x40 {
		w.t.Fatalf("%v: sent a malformed response: %x", c, b)
	}
	c.got = append(c.got, r)
}
