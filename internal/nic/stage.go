package nic

import (
	"github.com/gohixl/hixl/internal/pages"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// stage is where packets are built, one behind the other, until they are written
// in one batch. Consecutive packets of one size on one route are a train, whose
// last may be shorter.
type stage struct {
	buf   []byte
	used  int    // of buf; memory of the transport's counts as if it lay here
	lent  frames // to be used in its stead
	txs   []transport.Tx
	meta  []txMeta // of txs, index by index
	spare []transport.Tx

	trains  transport.Trains
	packets int

	// The train that the next packet may join, the last of txs.
	open       bool
	seg, count int
}

// txMeta says what a Tx is made of.
type txMeta struct {
	q     *Queue
	route *route
	start int // in buf
}

// buffer maps size bytes for packets, or takes them from the Go heap, and tells how
// to give them back.
func buffer(size int) (b []byte, free func()) {
	b, unmap, err := pages.Map(size)
	if err != nil {
		return make([]byte, size), func() {}
	}
	return b, func() { _ = unmap() }
}

// reset empties the stage.
func (st *stage) reset() {
	clear(st.txs)
	clear(st.meta)
	st.used, st.packets, st.open = 0, 0, false
	st.txs, st.meta = st.txs[:0], st.meta[:0]
}

// room returns the bytes left.
func (st *stage) room() int { return len(st.buf) - st.used }

// place reserves room for a packet of size bytes and returns it and the IPv4
// identification with which it will leave: its index in its train.
func (st *stage) place(q *Queue, r *route, tos uint8, size int) (b []byte, id uint16) {
	b = st.buf[st.used : st.used+size : st.used+size]
	st.packets++
	if last := len(st.txs) - 1; st.joins(last, r, tos, size) {
		st.used += size
		id = uint16(st.count)
		st.count++
		t := &st.txs[last]
		t.Data, t.Seg = st.buf[st.meta[last].start:st.used], st.seg
		st.open = size == st.seg
		return b, id
	}
	lease := uint64(0)
	if own, l := st.lent.take(r.srcPort, size); own != nil {
		b, lease = own, l
	}
	st.meta = append(st.meta, txMeta{q: q, route: r, start: st.used})
	st.txs = append(st.txs, transport.Tx{Data: b, Dst: r.dst, SrcPort: r.srcPort, TOS: tos, Lease: lease})
	st.used += size
	st.open, st.seg, st.count = st.trains.On(), size, 1
	return b, 0
}

// placeRun is place for n packets of one size; it reserves room for those that leave
// in the same train, k of them and at least one, with consecutive identifications.
func (st *stage) placeRun(q *Queue, r *route, tos uint8, size, n int) (b []byte, id uint16, k int) {
	b, id = st.place(q, r, tos, size)
	last := len(st.txs) - 1
	t, start := &st.txs[last], st.meta[last].start
	if !st.open || t.Lease != 0 {
		return b, id, 1
	}
	more := max(0, min(n-1, st.trains.MaxSegments-st.count, (st.trains.MaxBytes-(st.used-start))/size))
	if more == 0 {
		return b, id, 1
	}
	from := st.used - size
	st.used += more * size
	st.count += more
	st.packets += more
	t.Data, t.Seg = st.buf[start:st.used], st.seg
	return st.buf[from:st.used:st.used], id, 1 + more
}

func (st *stage) joins(last int, r *route, tos uint8, size int) bool {
	if !st.open || size > st.seg || st.count >= st.trains.MaxSegments {
		return false
	}
	t := &st.txs[last]
	return st.used-st.meta[last].start+size <= st.trains.MaxBytes &&
		t.TOS == tos && t.SrcPort == r.srcPort && t.Dst == r.dst && st.meta[last].route.shard == r.shard
}

// mark is a place in the stage to go back to.
type mark struct{ used, txs, packets int }

func (st *stage) mark() mark { return mark{st.used, len(st.txs), st.packets} }

// after is the mark behind the first k packets of size bytes of a train's part that
// begins at m; opens says that it begins the train.
func (m mark) after(k, size int, opens bool) mark {
	if k > 0 && opens {
		m.txs++
	}
	m.used += k * size
	m.packets += k
	return m
}

// undo takes back the packets placed since m.
func (st *stage) undo(m mark) {
	st.lent.giveBack(st.txs[m.txs:])
	clear(st.txs[m.txs:])
	clear(st.meta[m.txs:])
	st.txs, st.meta = st.txs[:m.txs], st.meta[:m.txs]
	if last := m.txs - 1; last >= 0 && st.txs[last].Lease == 0 { // packets that joined an older train
		t := &st.txs[last]
		t.Data = st.buf[st.meta[last].start:m.used]
		if len(t.Data) <= t.Seg {
			t.Seg = 0
		}
	}
	st.used, st.packets, st.open = m.used, m.packets, false
}

// split makes single packets of the trains from Tx i on and seals them anew: the
// transport cannot send trains after all.
func (st *stage) split(i int) {
	st.trains = transport.Trains{}
	out, meta := st.spare[:0], make([]txMeta, 0, st.packets)
	for ; i < len(st.txs); i++ {
		t := &st.txs[i]
		h := st.meta[i].route.headers
		for k := range t.Packets() {
			single := *t
			single.Data, single.Seg = t.Packet(k), 0
			if k > 0 {
				h.Seal(single.Data)
			}
			out, meta = append(out, single), append(meta, st.meta[i])
		}
	}
	st.spare, st.txs, st.meta = st.txs, out, meta
	st.open = false
}

// seal writes the ICRC of a packet that leaves with the identification id.
func seal(h roce.Headers, pkt []byte, id uint16) {
	h.ID = id
	h.Seal(pkt)
}
