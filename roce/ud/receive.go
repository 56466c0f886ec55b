package ud

import (
	"net/netip"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// GRHLen is the length of the area for the network header at the start of a
// receive (§1.10).
const GRHLen = 40

// receiver takes datagrams.
type receiver struct {
	receives    wr.ReceiveSource
	recv        wr.Receive // taken but too short for what came, if kept
	kept        bool
	pend        wr.Ring[placement]
	outstanding int
	spans       []mr.Span
	data        [GRHLen + roce.MaxMTU]byte
}

type placement struct {
	done    bool
	outcome wr.Outcome
	wc      cq.Completion
}

// Accept takes a datagram that came from src; network is its network header as a
// receive shows it (§1.10). What does not fit is dropped silently (§4.16).
func (u *UD) Accept(p *roce.Packet, src netip.Addr, network *[GRHLen]byte) wr.Work {
	r := &u.recv
	switch {
	case u.Failed():
		u.stats.DroppedInError++
	case p.Opcode != roce.OpUDSendOnly && p.Opcode != roce.OpUDSendOnlyImm || p.CheckLength(int(u.mtu)) != nil:
		u.stats.DroppedOpcode++
	case p.DETH.QKey != u.qkey:
		u.stats.BadQKey++
	case r.pend.Len() >= MaxPending:
		u.stats.Busy++
	case !r.take():
		u.stats.NoReceive++
	case GRHLen+uint64(len(p.Payload)) > wr.SpanBytes(r.recv.Spans):
		u.stats.TooLong++
	default:
		return r.place(u, p, src, network)
	}
	return wr.Work{}
}

// take gets the next receive, unless one was kept (R15).
func (r *receiver) take() bool {
	if !r.kept {
		r.recv.Spans = r.recv.Spans[:0]
		r.kept = r.receives != nil && r.receives.Take(&r.recv)
	}
	return r.kept
}

func (r *receiver) place(u *UD, p *roce.Packet, src netip.Addr, network *[GRHLen]byte) wr.Work {
	n := copy(r.data[:], network[:])
	n += copy(r.data[n:], p.Payload)
	wc := wr.ReceiveCompletion(wr.TraitSend, p, r.recv.ID, uint32(n))
	wc.Flags |= cq.GRH
	wc.SrcQP, wc.Peer = p.DETH.SrcQP, src
	if p.Opcode == roce.OpUDSendOnlyImm {
		wc.Flags |= cq.WithImm
		wc.Imm = p.Imm
	}
	r.kept = false
	r.pend.Push(placement{wc: wc})
	r.outstanding++
	u.stats.Received++
	r.spans = wr.Slice(r.spans[:0], r.recv.Spans, 0, uint64(n))
	return wr.Work{Kind: wr.WorkPlace, Token: r.pend.Tail - 1, Spans: r.spans, Data: r.data[:n]}
}

// Commit reports that the placement with this token has ended.
func (u *UD) Commit(token uint64, o wr.Outcome) {
	r := &u.recv
	if !r.pend.Has(token) || r.pend.At(token).done {
		return
	}
	e := r.pend.At(token)
	e.done, e.outcome = true, o
	r.outstanding--
	r.settle(u)
}

// settle gives the completions of what is in memory, in order.
func (r *receiver) settle(u *UD) {
	for r.pend.Len() > 0 && r.pend.At(r.pend.Head).done {
		e := *r.pend.At(r.pend.Head)
		r.pend.Pop()
		switch {
		case u.Failed():
			e.wc.Status, e.wc.Flags = cq.StatusFlushed, 0
		case e.outcome != wr.Done:
			e.wc.Status, e.wc.Flags = cq.StatusLocalProtection, 0
		}
		u.complete(&e.wc)
		if e.wc.Status != cq.StatusSuccess {
			u.fail(e.wc.Status)
		}
	}
	if u.Failed() && r.pend.Len() == 0 && r.kept {
		r.kept = false
		u.complete(&cq.Completion{WRID: r.recv.ID, Opcode: cq.OpRecv, Status: cq.StatusFlushed})
	}
}
