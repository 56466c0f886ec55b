package xdp

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// queue is one queue of the link and its socket. Its two halves are independent.
type queue struct {
	c     *Conn
	id    int
	rings *rings
	mem   *memory
	base  int // of its part of the memory

	rxMu  sync.Mutex
	p     parser // guarded by rxMu, as all below
	spare []uint64
	out   []bool // chunks that are lent, by number
	depth depth

	txMu    sync.Mutex
	free    []uint32  // slots; guarded by txMu, as all below
	left    []uint8   // descriptors of a slot that the kernel has
	loaned  []bool    // slots that are lent
	flying  int       // slots that the kernel has
	waiting []waiting // frames for neighbours that are being resolved
	held    map[*path]int
	last    *path // of lastDst
	lastDst netip.Addr
	kicked  uint32 // producer of the send ring at the last system call

	counts counts
}

// counts are updated once a batch, or for what is rare.
type counts struct {
	rxPackets, rxBytes, rxTrains, rxBad       atomic.Uint64
	txPackets, txBytes, txFull, txUnreachable atomic.Uint64
	unresolved, kernelRx, kernelTx            atomic.Uint64
}

func newQueue(c *Conn, id int, r *rings, m *memory) *queue {
	q := &queue{
		c: c, id: id, rings: r, mem: m, base: id * m.perQueue(),
		p:     parser{local: c.addr, verify: c.cfg.VerifyChecksum, trains: c.mode == ModeGeneric},
		spare: make([]uint64, 0, m.rx), out: make([]bool, m.rx), depth: newDepth(m.rx),
		free: make([]uint32, m.tx), left: make([]uint8, m.tx), loaned: make([]bool, m.tx),
		held: make(map[*path]int),
	}
	for i := m.rx - 1; i >= 0; i-- {
		q.spare = append(q.spare, uint64(q.base+i*m.chunk))
	}
	for i := range q.free {
		q.free[i] = uint32(m.tx - 1 - i)
	}
	return q
}

// slotAt is where slot i begins in the memory.
func (q *queue) slotAt(i uint32) int { return q.base + q.mem.rx*q.mem.chunk + int(i)*q.mem.slot }

// account adds up where the queue's frames are.
func (q *queue) account(a *Accounting) {
	q.rxMu.Lock()
	lent := 0
	for _, out := range q.out {
		if out {
			lent++
		}
	}
	a.RxTotal += q.mem.rx
	a.RxLent += lent
	a.RxSpare += len(q.spare)
	a.RxFill += q.mem.rx - lent - len(q.spare)
	a.RxReady += int(q.rings.rx.more())
	q.rxMu.Unlock()

	q.txMu.Lock()
	defer q.txMu.Unlock()
	q.reap()
	a.TxTotal += q.mem.tx
	a.TxFree += len(q.free)
	a.TxWaiting += len(q.waiting)
	a.TxInKernel += q.flying
	for _, out := range q.loaned {
		if out {
			a.TxLent++
		}
	}
}
