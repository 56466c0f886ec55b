package nic

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/roce"
)

// firstQPN is the lowest number given out: 0 and 1 are special, and other stacks
// start as low (§1.7).
const firstQPN = 16

// minSlotBits keeps the table a few cache lines at least.
const minSlotBits = 6

// qpnTable finds queue pairs by number: the low bits of a QPN are a slot, the high
// bits tell its successive users apart. Slots are visited in a random cycle, so a
// number comes back only after all others of its slot, and the low bits, by which
// a later receive shard may be chosen, are spread evenly. get takes no lock.
type qpnTable struct {
	slots []atomic.Pointer[Queue]
	mask  uint32
	gsi   atomic.Pointer[Queue] // QP1

	mu     sync.Mutex
	gens   []uint32 // guarded by mu; high bits of the last number of each slot
	at     uint32   // guarded by mu
	stride uint32   // set once; odd, so that the cycle visits every slot
	live   int      // guarded by mu
	limit  int      // set once
	hasGSI bool     // guarded by mu: QP1 exists or is being made
	held   holds    // guarded by mu
}

// holds counts who wants a number not to be given out, its queue pair living or
// not.
type holds map[roce.QPN]int

func newQPNTable(limit int) (*qpnTable, error) {
	k := max(bits.Len(uint(limit-1)), minSlotBits)
	size := 1 << k
	random := make([]byte, 4*size+8)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("nic: reading randomness for queue pair numbers: %w", err)
	}
	t := &qpnTable{slots: make([]atomic.Pointer[Queue], size), mask: uint32(size - 1), gens: make([]uint32, size), limit: limit, held: make(holds)}
	for i := range t.gens {
		t.gens[i] = binary.LittleEndian.Uint32(random[4*i:]) &^ reserved
	}
	t.at = binary.LittleEndian.Uint32(random[4*size:])
	t.stride = binary.LittleEndian.Uint32(random[4*size+4:]) | 1
	return t, nil
}

// get returns the queue pair with the number, or nil.
func (t *qpnTable) get(n roce.QPN) *Queue {
	if n == roce.QPNGSI {
		return t.gsi.Load()
	}
	q := t.slots[uint32(n)&t.mask].Load()
	if q == nil || q.qpn != n {
		return nil
	}
	return q
}

// reserve picks a free number. put or cancel must follow before the next.
func (t *qpnTable) reserve() (roce.QPN, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live >= t.limit {
		return 0, fmt.Errorf("%w: %d exist, close some or raise MaxQPs (at most %d)", ErrTooManyQPs, t.live, MaxQPs)
	}
	k := bits.Len32(t.mask)
	for {
		t.at += t.stride
		slot := t.at & t.mask
		if t.slots[slot].Load() != nil || t.gens[slot]&reserved != 0 {
			continue
		}
		t.gens[slot] = (t.gens[slot] + 1) &^ reserved
		n := roce.QPN(t.gens[slot]<<k|slot) & roce.QPNMask
		if n < firstQPN || n == roce.QPNMulticast || t.held[n] > 0 {
			continue
		}
		t.gens[slot] |= reserved
		t.live++
		return n, nil
	}
}

// reserveGSI takes number 1, of which there is one.
func (t *qpnTable) reserveGSI() (roce.QPN, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasGSI {
		return 0, ErrGSIExists
	}
	t.hasGSI = true
	return roce.QPNGSI, nil
}

// reserved marks a slot between reserve and put.
const reserved = 1 << 31

// put makes q, whose number was reserved, findable.
func (t *qpnTable) put(q *Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.qpn == roce.QPNGSI {
		t.gsi.Store(q)
		return
	}
	slot := uint32(q.qpn) & t.mask
	t.gens[slot] &^= reserved
	t.slots[slot].Store(q)
}

// cancel gives a reserved number back.
func (t *qpnTable) cancel(n roce.QPN) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == roce.QPNGSI {
		t.hasGSI = false
		return
	}
	t.gens[uint32(n)&t.mask] &^= reserved
	t.live--
}

// remove makes q unfindable and reports whether it was there.
func (t *qpnTable) remove(q *Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.qpn == roce.QPNGSI {
		t.hasGSI = t.hasGSI && !t.gsi.CompareAndSwap(q, nil)
		return !t.hasGSI
	}
	if !t.slots[uint32(q.qpn)&t.mask].CompareAndSwap(q, nil) {
		return false
	}
	t.live--
	return true
}

// count returns the number of queue pairs.
func (t *qpnTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// all calls f for every queue pair.
func (t *qpnTable) all(f func(*Queue)) {
	if q := t.gsi.Load(); q != nil {
		f(q)
	}
	for i := range t.slots {
		if q := t.slots[i].Load(); q != nil {
			f(q)
		}
	}
}

// HoldQPN keeps a queue pair number from being given out, after its queue pair is
// closed too, until [NIC.FreeQPN] was called as often (§5.13).
func (n *NIC) HoldQPN(qpn roce.QPN) {
	n.qps.mu.Lock()
	defer n.qps.mu.Unlock()
	n.qps.held[qpn]++
}

// FreeQPN ends a hold.
func (n *NIC) FreeQPN(qpn roce.QPN) {
	n.qps.mu.Lock()
	defer n.qps.mu.Unlock()
	if n.qps.held[qpn]--; n.qps.held[qpn] <= 0 {
		delete(n.qps.held, qpn)
	}
}

// HeldQPNs returns how many numbers are held, and whether qpn is one of them.
func (n *NIC) HeldQPNs(qpn roce.QPN) (total int, held bool) {
	n.qps.mu.Lock()
	defer n.qps.mu.Unlock()
	return len(n.qps.held), n.qps.held[qpn] > 0
}
