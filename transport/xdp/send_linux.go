package xdp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// Bounds of sending.
const (
	// maxWaiting frames wait for one neighbour, maxWaitingAll in a queue.
	maxWaiting    = 1024
	maxWaitingAll = 1536
	// fullWait is how long a full ring is waited for before packets count as lost.
	fullWait = 5 * time.Millisecond
	fullStep = 20 * time.Microsecond
)

// waiting is a frame whose hardware address is being looked for.
type waiting struct {
	p       *path
	slot    uint32
	n       int // of the packet, which lies behind the headroom
	id      uint16
	srcPort uint16
	tos     uint8
}

// write sends the first packets of b that leave by this queue, and returns how
// many were dealt with.
func (q *queue) write(b []transport.Tx) (n int, err error) {
	q.txMu.Lock()
	defer q.txMu.Unlock()
	q.reap()
	var packets, bytes uint64
	for n < len(b) && q.c.queueFor(&b[n]) == q {
		t := &b[n]
		if err = transport.CheckTx(t, q.c.addr, transport.Trains{}); err != nil {
			break
		}
		var sent bool
		if sent, err = q.packet(t); err != nil {
			break
		}
		q.settled(t)
		if sent {
			packets++
			bytes += uint64(len(t.Data))
		}
		n++
	}
	q.kick()
	if packets > 0 {
		q.counts.txPackets.Add(packets)
		q.counts.txBytes.Add(bytes)
	}
	return n, err
}

// packet sends one packet, or loses it as a network does: sent tells.
func (q *queue) packet(t *transport.Tx) (sent bool, err error) {
	if !q.c.link.usable.Load() {
		q.counts.txUnreachable.Add(1)
		return false, nil
	}
	if q.last == nil || q.lastDst != t.Dst || q.last.gone.Load() {
		q.last, q.lastDst = q.c.paths.get(t.Dst), t.Dst
	}
	p := q.last
	if p == nil {
		q.counts.txUnreachable.Add(1)
		return false, nil
	}
	if !p.used.Load() {
		p.used.Store(true)
	}
	switch p.state() {
	case pathReady:
		return q.direct(t, p)
	case pathKernel:
		return q.c.kernel.send(q, t)
	case pathUnreachable:
		q.counts.txUnreachable.Add(1)
		return false, nil
	default:
		if err := q.tooLong(t, q.c.link.mtu.Load()); err != nil {
			return false, err
		}
		if q.c.paths.ask(p) {
			// The first packet goes the kernel's way, which resolves the neighbour as
			// it does for any traffic from our address, and sends it before the others.
			return q.c.kernel.send(q, t)
		}
		return q.wait(t, p), nil
	}
}

// direct puts the packet into the send ring.
func (q *queue) direct(t *transport.Tx, p *path) (bool, error) {
	tm := p.tmpl.Load()
	if err := q.tooLong(t, int64(tm.mtu)); err != nil {
		return false, err
	}
	if len(q.waiting) > 0 && q.held[p] > 0 {
		q.flushWaiting(p)
	}
	slot, ok := q.fill(t)
	if !ok {
		q.counts.txFull.Add(1)
		return false, nil
	}
	q.post(tm, slot, len(t.Data), t.ID, q.c.SourcePort(t.SrcPort), t.TOS)
	return true, nil
}

// tooLong reports a packet that the path does not take.
func (q *queue) tooLong(t *transport.Tx, mtu int64) error {
	size := len(t.Data) + ipv4Len + udpLen
	if q.c.addr.Is6() {
		size = len(t.Data) + ipv6Len + udpLen
	}
	if size <= int(mtu) {
		return nil
	}
	return &transport.MTUError{Dst: t.Dst, Bytes: size, MTU: int(mtu)}
}

// post gives the kernel the packet in a slot, of n bytes.
func (q *queue) post(tm *template, slot uint32, n int, id, srcPort uint16, tos uint8) {
	at := q.slotAt(slot)
	start := tm.put(q.mem.buf[at:at+q.mem.slot], headroom, n, id, srcPort, tos)
	from, end := at+start, at+headroom+n
	tx := q.rings.tx
	for from < end {
		stop := min(end, from/q.mem.chunk*q.mem.chunk+q.mem.chunk)
		d := unix.XDPDesc{Addr: uint64(from), Len: uint32(stop - from)}
		if stop < end {
			d.Options = unix.XDP_PKT_CONTD
		}
		tx.addDesc(d)
		q.left[slot]++
		from = stop
	}
	q.flying++
}

// ringRoom makes sure that the send ring has room for a frame. When there is none
// it has the kernel send, and waits for it a little.
func (q *queue) ringRoom() bool {
	need := uint32(q.mem.descs())
	return q.await(func() bool { return q.rings.tx.room(need) >= need })
}

// await has the kernel send until ready, or for too long.
func (q *queue) await(ready func() bool) bool {
	if ready() {
		return true
	}
	for end := time.Now().Add(fullWait); ; time.Sleep(fullStep) {
		q.kick()
		q.reap()
		if ready() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// slot takes a free slot, with room in the send ring for its descriptors.
func (q *queue) slot() (uint32, bool) {
	if !q.ringRoom() || !q.await(func() bool { return len(q.free) > 0 }) {
		return 0, false
	}
	last := len(q.free) - 1
	s := q.free[last]
	q.free = q.free[:last]
	return s, true
}

// reap takes back the slots of frames that the kernel is done with.
func (q *queue) reap() {
	comp := q.rings.comp
	n := comp.more()
	if n == 0 {
		return
	}
	slots := q.slotAt(0)
	for i := range n {
		slot := (int(comp.addr(i)) - slots) / q.mem.slot
		if slot < 0 || slot >= len(q.left) || q.left[slot] == 0 {
			continue
		}
		if q.left[slot]--; q.left[slot] == 0 {
			q.flying--
			q.free = append(q.free, uint32(slot))
		}
	}
	comp.take(n)
}

// kickTries bounds the system calls for one batch that make no progress.
const kickTries = 64

// kick shows the kernel the new descriptors and has it send them.
func (q *queue) kick() {
	tx := q.rings.tx
	if tx.prod == q.kicked && tx.pending() == 0 {
		return
	}
	tx.publish()
	q.kicked = tx.prod
	if !tx.wantsWakeup() && q.rings.needWakeup {
		return // the driver looks itself
	}
	pending := tx.pending()
	for tries := 0; pending > 0 && tries < kickTries; {
		errno := q.rings.send()
		now := tx.pending()
		if now < pending {
			tries = 0
		} else {
			tries++
		}
		pending = now
		switch errno {
		case 0:
			if q.rings.zeroCopy {
				return
			}
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
			q.reap() // its completion ring may be full
		case unix.EBUSY, unix.EINTR: // a full device queue: that frame is lost
		default: // the link is down or gone; what waits leaves when it is back
			return
		}
	}
}

// wait keeps the packet until its neighbour is known, if there is room.
func (q *queue) wait(t *transport.Tx, p *path) bool {
	if q.held[p] >= maxWaiting || len(q.waiting) >= maxWaitingAll || len(q.free) == 0 {
		q.counts.unresolved.Add(1)
		q.counts.txUnreachable.Add(1)
		return false
	}
	slot, ok := q.fill(t)
	if !ok {
		q.counts.txFull.Add(1)
		return false
	}
	q.waiting = append(q.waiting, waiting{p: p, slot: slot, n: len(t.Data), id: t.ID, srcPort: q.c.SourcePort(t.SrcPort), tos: t.TOS})
	q.held[p]++
	return true
}

// flushWaiting sends what waits for p, or drops it when p leads nowhere. Locked.
func (q *queue) flushWaiting(p *path) {
	if q.held[p] == 0 {
		return
	}
	delete(q.held, p)
	tm, ready := p.tmpl.Load(), p.state() == pathReady
	rest := q.waiting[:0]
	need := uint32(q.mem.descs())
	for _, w := range q.waiting {
		switch {
		case w.p != p:
			rest = append(rest, w)
		case ready && q.rings.tx.room(need) >= need && q.tooLongFor(tm, w.n):
			q.post(tm, w.slot, w.n, w.id, w.srcPort, w.tos)
		default:
			q.free = append(q.free, w.slot)
			q.counts.unresolved.Add(1)
			q.counts.txUnreachable.Add(1)
		}
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
}

// tooLongFor reports whether a packet of n bytes fits the path.
func (q *queue) tooLongFor(tm *template, n int) bool { return tm.packetLen(n) <= tm.mtu }

// settle deals with what waits for a path that changed.
func (q *queue) settle(p *path) {
	q.txMu.Lock()
	defer q.txMu.Unlock()
	q.flushWaiting(p)
	q.kick()
}

// closedError is what calls of a closed or failed Conn return.
func (c *Conn) closedError() error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	if dead := c.dead.Load(); dead != nil {
		return dead
	}
	return nil
}
