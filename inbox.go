package hixl

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerwire"
)

// Receives of a context, which all its queue pairs share. A peer that finds none
// is asked to wait, so their number bounds what peers can make this side hold.
const (
	inboxSlots = 512
	slotBytes  = (peerwire.MaxMessage + 63) &^ 63
)

// inbox is where messages and immediates of peers arrive.
type inbox struct {
	c   *Context
	mem *Region
	srq *SRQ
}

// arrival is a message or an immediate that has not been dealt with.
type arrival struct {
	lane   *lane
	slot   uint64
	size   uint32
	imm    uint32
	hasImm bool
}

func newInbox(c *Context) (*inbox, error) {
	b := &inbox{c: c}
	var err error
	if b.mem, err = c.pd.Alloc(inboxSlots*slotBytes, LocalWrite); err != nil {
		return nil, err
	}
	if b.srq, err = c.nic.CreateSRQ(c.pd, SRQConfig{MaxWR: inboxSlots, MaxSGE: 1}); err != nil {
		return nil, err
	}
	for slot := range uint64(inboxSlots) {
		if err := b.post(slot); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// post makes a slot receive.
func (b *inbox) post(slot uint64) error {
	sge := [1]SGE{b.mem.SGE(slot*slotBytes, peerwire.MaxMessage)}
	return b.srq.Post(RecvWR{ID: slot, SGE: sge[:]})
}

// handle deals with an arrival on the dispatcher, and makes its slot receive again.
func (b *inbox) handle(now mono.Time, a *arrival) {
	p := a.lane.p
	switch {
	case a.hasImm:
		p.deliver(Notification{Imm: a.imm, IsImm: true})
	default:
		at := a.slot * slotBytes
		var m peerwire.Message
		err := m.Decode(b.mem.Bytes()[at : at+uint64(a.size)])
		if err == nil {
			err = p.message(now, a.lane, &m)
		}
		if err != nil {
			p.offended(now, a.lane, err)
		}
	}
	_ = b.post(a.slot) // refused when the context closes
}

// close gives the memory back. All queue pairs must be closed, or the NIC.
func (b *inbox) close() error {
	_ = b.srq.Close() // refused while others' queue pairs are in TIMEWAIT, which free it
	return b.mem.Deregister(overContext)
}

// received is the sink of a lane's receives.
type received struct{ *lane }

// Complete implements cq.Sink. The queue pair's lock is held.
func (r received) Complete(c *Completion) bool {
	x := r.p.c
	if c.Status != cq.StatusSuccess {
		_ = x.inbox.post(c.WRID) // a message that broke off
		return true
	}
	r.signs.Add(1)
	a := arrival{lane: r.lane, slot: c.WRID, size: c.ByteLen, imm: c.Imm, hasImm: c.Opcode == cq.OpRecvWriteImm}
	x.todo.Lock()
	x.todo.arrivals = append(x.todo.arrivals, a)
	x.todo.Unlock()
	x.kick()
	return true
}
