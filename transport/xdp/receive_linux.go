package xdp

import (
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// A lease is 0 for none, the number of a chunk plus 1, or that of a linear buffer
// with this bit.
const leaseLinear = 1 << 32

// read fills slots with what the receive ring has and returns how many.
func (q *queue) read(b []transport.Rx) int {
	q.rxMu.Lock()
	defer q.rxMu.Unlock()
	rx := q.rings.rx
	ready := rx.more()
	if ready > 0 {
		q.depth.waited(int(ready))
	}
	n, bad := 0, uint64(0)
	var bytes, packets, trains uint64
	taken := uint32(0)
	for taken < ready && n < len(b) {
		pieces := q.pieces(taken, ready)
		if pieces == 0 {
			break // the rest of it comes
		}
		ok := q.frame(taken, pieces, &b[n])
		taken += pieces
		if !ok {
			bad++
			continue
		}
		k := uint64(b[n].Packets())
		packets += k
		bytes += uint64(len(b[n].Data))
		if k > 1 {
			trains++
		}
		n++
	}
	if taken > 0 {
		rx.take(taken)
		q.depth.took(int(taken))
	}
	q.refill()
	if n > 0 {
		q.counts.rxPackets.Add(packets)
		q.counts.rxBytes.Add(bytes)
	}
	if bad+trains > 0 {
		q.counts.rxBad.Add(bad)
		q.counts.rxTrains.Add(trains)
	}
	return n
}

// pieces returns how many descriptors the frame at i has, 0 when its end is not
// there yet.
func (q *queue) pieces(i, ready uint32) uint32 {
	for n := uint32(1); i < ready; i, n = i+1, n+1 {
		if q.rings.rx.desc(i).Options&unix.XDP_PKT_CONTD == 0 {
			return n
		}
	}
	return 0
}

// frame puts the frame of descriptors i to i+n-1 into a slot, and reports whether
// there was one for us.
func (q *queue) frame(i, n uint32, rx *transport.Rx) bool {
	mac := q.c.link.mac.Load()
	d := q.rings.rx.desc(i)
	piece, chunk := q.piece(d)
	if chunk < 0 {
		return false
	}
	if n == 1 {
		if !q.p.parse(piece, mac, rx) {
			q.spare = append(q.spare, q.chunkAt(chunk))
			return false
		}
		rx.Lease = uint64(q.id*q.mem.rx+chunk) + 1
		q.out[chunk] = true
		q.mem.lend(1)
		return true
	}
	total := 0
	for k := range n {
		total += int(q.rings.rx.desc(i + k).Len)
	}
	whole, number := q.c.linear.get(total)
	at := 0
	for k := range n {
		piece, chunk := q.piece(q.rings.rx.desc(i + k))
		if chunk < 0 {
			continue
		}
		if whole != nil {
			at += copy(whole[at:], piece)
		}
		q.spare = append(q.spare, q.chunkAt(chunk))
	}
	if whole == nil {
		return false
	}
	if !q.p.parse(whole[:at], mac, rx) {
		q.c.linear.put(number)
		return false
	}
	rx.Lease = leaseLinear | uint64(number)
	return true
}

func (q *queue) chunkAt(chunk int) uint64 { return uint64(q.base + chunk*q.mem.chunk) }

// piece returns what a descriptor points to and the number of its chunk, -1 for
// one that cannot be.
func (q *queue) piece(d unix.XDPDesc) ([]byte, int) {
	at := int(d.Addr) - q.base
	if d.Addr > uint64(len(q.mem.buf)) || at < 0 || at >= q.mem.rx*q.mem.chunk {
		return nil, -1
	}
	chunk := at / q.mem.chunk
	from, to := q.base+at, q.base+at+int(d.Len)
	if q.out[chunk] || to > q.base+(chunk+1)*q.mem.chunk {
		return nil, -1
	}
	return q.mem.buf[from:to:to], chunk
}

// refill gives chunks back to the kernel, as many as it shall have.
func (q *queue) refill() {
	want := min(q.depth.lacks(), len(q.spare))
	if want <= 0 {
		return
	}
	fill := q.rings.fill
	n := min(int(fill.room(uint32(want))), want)
	q.depth.gave(n)
	from := len(q.spare) - n
	for _, a := range q.spare[from:] {
		fill.addAddr(a)
	}
	q.spare = q.spare[:from]
	fill.publish()
	if q.rings.zeroCopy && fill.wantsWakeup() {
		q.rings.poll()
	}
}

// giveBack takes the memory back that the slots of b were lent.
func (c *Conn) giveBack(b []transport.Rx) {
	var q *queue
	back := 0
	for i := range b {
		lease := b[i].Lease
		if lease == 0 {
			continue
		}
		b[i].Lease, b[i].Data = 0, nil
		if lease&leaseLinear != 0 {
			c.linear.put(uint32(lease))
			continue
		}
		number := int(lease - 1)
		id, chunk := number/c.mem.rx, number%c.mem.rx
		if id >= len(c.queues) {
			continue
		}
		if next := c.queues[id]; next != q {
			if q != nil {
				q.rxMu.Unlock()
			}
			q = next
			q.rxMu.Lock()
		}
		if q.out[chunk] {
			q.out[chunk] = false
			q.spare = append(q.spare, q.chunkAt(chunk))
			back++
		}
	}
	if q != nil {
		q.rxMu.Unlock()
	}
	if back > 0 {
		c.mem.lend(-back)
	}
}
