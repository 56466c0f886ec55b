package nic

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
)

// Sizes of a receive batch.
const (
	rxBatchBytes = 1 << 20
	rxMinSlots   = 4
	rxMaxSlots   = 64
)

// receiver reads the transport, or a shard of it, and feeds queue pairs. Those with
// its number in the low bits of theirs are its own: they wait in its timers and
// post by its senders. But packets of any may come, when the carrier does not know
// better. Everything below mu belongs to who holds it: the receive goroutine, a
// waiting application that makes progress, or the owner of a stepped NIC.
type receiver struct {
	nic    *NIC             // set once
	index  int              // set once
	reader transport.Reader // set once
	timers timers
	spare  senderPool
	total  rxTotal
	polls  atomic.Uint64 // by applications
	resume chan struct{} // capacity 1: an application stops looking
	rest   rest          // of the receive goroutine

	mu      sync.Mutex
	slots   []transport.Rx // made at the first look
	free    func()         // of the slots' storage
	closed  bool
	pkt     roce.Packet
	send    *sender
	lone    bool // asking for one message costs less than for a batch, and batches are nobody's plan
	narrow  bool // the last look found nothing, so the next asks for one message
	full    bool // the last batch had all that was asked for
	gather  gather
	behind  int // after so many batches more, what comes next is waited for awake
	touched []*Queue
	sorted  []*Queue // scratch
	batch   uint64   // number of the batch, not that of another receiver's
	counts  rxCounts

	// The queue pair whose lock is held, so that a run of packets for one locks
	// once.
	locked *Queue
	sums   sums
	vec    [1]device.Vec
	from   qp.Arrival
	loan   loan
	bytes  uint64 // of the last batch
}

func newReceiver(n *NIC, index int, reader transport.Reader) *receiver {
	return &receiver{
		nic: n, index: index, reader: reader, batch: uint64(index), resume: make(chan struct{}, 1), send: newSender(n),
	}
}

// makeSlots makes the slots of a batch.
func (r *receiver) makeSlots() {
	size := max(r.nic.conn.Caps().RxBuf, 1)
	slots := min(max(rxBatchBytes/size, rxMinSlots), rxMaxSlots)
	store, free := buffer(max(slots*size, rxBatchBytes)) // of which huge pages are worth it
	store = store[:slots*size]
	r.slots, r.free = transport.NewBatchIn(r.nic.conn, store), free
}

// release gives back the memory; nothing is received any more.
func (r *receiver) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.send.free()
	if r.slots != nil {
		r.reader.Release(r.slots)
		r.free()
		r.slots = nil
	}
	r.spare.close()
}

// poll handles one batch without blocking and returns how many slots it filled.
// The caller holds mu.
func (r *receiver) poll(clock func() mono.Time) (int, error) {
	if r.closed {
		return 0, net.ErrClosed
	}
	if r.slots == nil {
		r.makeSlots()
	}
	slots := r.slots
	if r.narrow {
		slots = slots[:1]
	}
	slots[0].SkipTOS = r.nic.cfg.Progress == LowLatency && !r.nic.datagrams.Load()
	got, err := r.reader.ReadBatch(slots, false)
	r.narrow, r.full = got == 0 && r.lone, got == len(slots)
	if got == 0 {
		r.gather.took(0)
		return 0, err
	}
	afterReceive()
	now := clock()
	r.behind = max(r.behind-1, 0)
	r.batch += uint64(len(r.nic.rx))
	for i := range r.slots[:got] {
		r.datagram(now, &r.slots[i])
	}
	r.gather.coming = 0
	if r.locked != nil {
		r.gather.coming = r.locked.Coming()
	}
	r.unlock()
	r.loan.end()
	r.bytes = r.counts.bytes
	r.gather.took(r.bytes)
	r.counts.flush(&r.total)
	r.byShard(r.touched)
	r.send.flush(now, r.touched...)
	clear(r.touched)
	r.touched = r.touched[:0]
	return got, err
}

// datagram handles the packets of one slot.
func (r *receiver) datagram(now mono.Time, rx *transport.Rx) {
	if rx.Dst != r.nic.local {
		r.counts.drops[DropAddress] += uint64(rx.Packets())
		r.counts.dropped = true
		return
	}
	h := roce.Headers{
		Src: rx.Src, Dst: rx.Dst, SrcPort: rx.SrcPort, DstPort: roce.Port, ID: rx.ID, Frag: rx.Frag,
	}
	if !rx.HaveID {
		h.Frag = roce.DontFragment
	}
	for i := 0; i < rx.Packets(); {
		b := rx.Packet(i)
		h.ID = rx.ID + uint16(i) // for trains, and the likely one when it is not known
		i++
		if q, v := r.judge(b, rx); q != nil && r.verified(now, q, v, rx, &h, b) && i < rx.Packets() {
			i += r.follow(now, q, v, rx, &h, i)
		}
	}
}

// verified checks the packet's ICRC, the last of the rules of §1.13, and delivers
// it. A long payload whose place is known goes there in the same pass (design,
// decision 13); then placed is true, and q is locked.
func (r *receiver) verified(now mono.Time, q *Queue, v *qp.View, rx *transport.Rx, h *roce.Headers, b []byte) (placed bool) {
	ok := false
	if len(r.pkt.Payload) >= minFused {
		ok, placed = r.copyChecked(q, v, rx, h, b)
	}
	if !placed {
		ok = r.sealed(b, v, rx, h)
	}
	r.seen(q, h, ok)
	if !ok {
		r.counts.drop(DropICRC)
		return false
	}
	r.counts.packets++
	r.counts.bytes += uint64(len(b))
	r.deliver(now, q, v, rx, len(b), placed)
	return placed
}

// deliver gives the packet, of n bytes and in order, to its queue pair.
func (r *receiver) deliver(now mono.Time, q *Queue, v *qp.View, rx *transport.Rx, n int, placed bool) {
	p := &r.pkt
	r.lock(q)
	if q.slow != nil && len(p.Payload) > 0 && q.slow.Congested() {
		r.counts.drop(DropMemory)
		return
	}
	if p.Opcode.IsRequest() && p.Opcode != roce.OpReadRequest {
		r.readsFirst(now, q)
	}
	if placed {
		q.Placed(now, p)
	} else if !r.accept(now, q, v, rx, n) {
		r.counts.drop(DropState)
		return
	}
	if rx.TOS&ecnMask == ecnMask && len(p.Payload) > 0 {
		q.Congested(now)
	}
	if q.touched != r.batch {
		q.touched = r.batch
		r.touched = append(r.touched, q)
	}
}

// accept gives the packet to the engine and does with memory what it asks for.
func (r *receiver) accept(now mono.Time, q *Queue, v *qp.View, rx *transport.Rx, n int) bool {
	var w wr.Work
	var ok bool
	if v.Type >= qp.UD {
		w, ok = q.AcceptDatagram(&r.pkt, v, r.arrivalOf(rx, n))
	} else {
		w, ok = q.Accept(now, &r.pkt, v)
	}
	if ok {
		r.perform(now, q, &w)
		if v.Type == qp.RC && q.Missing() {
			r.behind = behindFor
		}
	}
	return ok
}

// lock takes the lock of q and gives back that of the one before.
func (r *receiver) lock(q *Queue) {
	if r.locked == q {
		return
	}
	r.unlock()
	q.Lock()
	r.locked = q
}

func (r *receiver) unlock() {
	if r.locked != nil {
		r.locked.Unlock()
		r.locked = nil
	}
}

// readsInOrder bounds the bytes of READ responses that are sent before a request
// behind them takes effect. Longer READs are fetched lazily, which the protocol
// allows where no fence is set (§3.8).
const readsInOrder = 16 << 20

// readsFirst lets the READs that a queue pair has accepted read their memory
// before a later request changes it.
func (r *receiver) readsFirst(now mono.Time, q *Queue) {
	for budget := readsInOrder; budget > 0 && (q.ReadsPending() || q.reading); {
		if !q.BeginDrain() {
			q.waiters++
			q.idle.Wait()
			q.waiters--
			continue
		}
		q.EndDrain(false) // the sender begins it again
		before := r.nic.counters.txBytes.Load()
		r.unlock()
		r.send.flush(now, q)
		r.lock(q)
		sent := int(r.nic.counters.txBytes.Load() - before)
		if sent == 0 {
			return
		}
		budget -= sent
	}
}

// run receives until the transport is closed or fails for good.
func (r *receiver) run() {
	timer := time.NewTimer(restFor)
	timer.Stop()
	for {
		if r.leave(timer) {
			r.late()
		}
		err := r.reader.WaitRead()
		if err == nil {
			err = r.drainSocket()
		}
		switch {
		case err == nil:
		case passing(err):
			r.nic.pause(err)
		default:
			r.nic.stopped(err)
			return
		}
	}
}

// bulk is the size of a batch, in bytes, that tells a transfer of data from an
// exchange of messages.
const bulk = 16 << 10

// behindFor is for how many batches the receive goroutine looks for what comes next,
// after one with packets that others before them are missed from. A peer that loses
// packets has few under way: it waits for each answer, so nothing gathers meanwhile,
// and a wake-up for each would take longer than all the rest.
const behindFor = 64

// gathers reports whether after a batch of some size what comes next is worth waiting
// for asleep: larger batches pay.
func (r *receiver) gathers() bool { return r.bytes > bulk && r.behind == 0 }

// drainSocket handles batches until the transport has nothing.
func (r *receiver) drainSocket() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for try := 0; ; {
		polls := r.polls.Load()
		n, err := r.poll(r.nic.clock)
		switch {
		case err != nil:
			return err
		case r.full:
		case n > 0 && r.gather.check:
		case n > 0 && r.naps():
			r.mu.Unlock()
			r.nic.nap(gatherFor)
			r.mu.Lock()
		case r.gathers():
			return nil
		case n > 0:
			try = 0
		case r.polls.Load() != polls || !r.nic.look(try):
			return nil // an application looks itself, or it is time to park
		default:
			try++
		}
	}
}
