package connmgr

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/roce/ud"
)

// Receives of QP1: the first, which every NIC has and which hold a batch of the
// receiver, and all, once somebody listens or a first MAD has come. What arrives
// beyond them before the service runs is lost, and sent again by the peer.
const (
	firstSlots = 64
	inboxSlots = 512
	slotBytes  = 304 // the GRH area and a MAD, 8-byte aligned
	madBytes   = ud.GRHLen + cm.MADLen
)

// Regions is how many regions of its NIC a manager takes.
const Regions = 2

// inbox holds the memory of QP1's receives, and is the sink of their completions.
type inbox struct {
	nic   *nic.NIC
	pd    *mr.PD
	first *mr.Region
	rest  *mr.Region // nil until it is needed; who runs has it

	mu    sync.Mutex
	got   []arrival         // guarded by mu
	later []func(mono.Time) // guarded by mu
}

// arrival is a datagram that QP1 has received.
type arrival struct {
	slot uint64
	src  netip.Addr
	from roce.QPN
	size uint32
}

func newInbox(n *nic.NIC, pd *mr.PD) (b *inbox, err error) {
	b = &inbox{nic: n, pd: pd}
	b.first, err = b.slots(firstSlots)
	return b, err
}

// slots returns memory for n receives.
func (b *inbox) slots(n int) (*mr.Region, error) {
	return b.pd.Register(host.New(make([]byte, n*slotBytes)), mr.Options{Access: mr.LocalWrite})
}

// grow takes the memory for the rest of the receives.
func (b *inbox) grow() (err error) {
	b.rest, err = b.slots(inboxSlots - firstSlots)
	return err
}

// Complete implements cq.Sink for receives. QP1's lock is held.
func (b *inbox) Complete(c *cq.Completion) bool {
	if c.Status != cq.StatusSuccess {
		return true // flushed: the NIC closes
	}
	b.mu.Lock()
	b.got = append(b.got, arrival{slot: c.WRID, src: c.Peer, from: c.SrcQP, size: c.ByteLen})
	b.mu.Unlock()
	b.nic.Wake()
	return true
}

// take moves what has arrived, and what was put off, to the caller's slices.
func (b *inbox) take(got []arrival, later []func(mono.Time)) ([]arrival, []func(mono.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	got, later = append(got, b.got...), append(later, b.later...)
	b.got = b.got[:0]
	clear(b.later)
	b.later = b.later[:0]
	return got, later
}

// mad returns the payload of an arrival. It is nil if it is not of a MAD's size, or
// not from a QP1 (§5.2), which is where answers go.
func (b *inbox) mad(a *arrival) []byte {
	if a.size != madBytes || a.from != roce.QPNGSI {
		return nil
	}
	r, at := b.place(a.slot)
	return r.Bytes()[at+ud.GRHLen : at+madBytes]
}

// place returns where a slot lies.
func (b *inbox) place(slot uint64) (r *mr.Region, at uint64) {
	if slot < firstSlots {
		return b.first, slot * slotBytes
	}
	return b.rest, (slot - firstSlots) * slotBytes
}

// receive returns the work request that makes a slot receive.
func (b *inbox) receive(slot uint64, sge []mr.SGE) qp.RecvWR {
	r, at := b.place(slot)
	sge[0] = r.SGE(at, madBytes)
	return qp.RecvWR{ID: slot, SGE: sge}
}

// close gives the memory back. QP1 must be closed.
func (b *inbox) close() error {
	err := b.first.Deregister(context.Background())
	if b.rest == nil {
		return err
	}
	return errors.Join(err, b.rest.Deregister(context.Background()))
}

// sent is the sink of QP1's sends: nobody waits for them.
type sent struct{}

// Complete implements cq.Sink.
func (sent) Complete(*cq.Completion) bool { return true }
