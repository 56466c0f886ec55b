package nic

import (
	"errors"

	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// judge decodes b into r.pkt and checks it in the order of §1.13, but for the
// ICRC. A packet that fails is dropped silently and counted; nil means that.
func (r *receiver) judge(b []byte, rx *transport.Rx) (*Queue, *qp.View) {
	p := &r.pkt
	if err := p.Decode(b); err != nil {
		r.counts.drop(dropOf(err))
		return nil, nil
	}
	q := r.locked // packets come in runs
	if q == nil || q.qpn != p.DestQP {
		if q = r.nic.qps.get(p.DestQP); q == nil {
			r.counts.drop(DropNoQP)
			return nil, nil
		}
	}
	v := q.View()
	if d := check(p, v, rx); d != NumDrops {
		r.counts.drop(d)
		return nil, nil
	}
	return q, v
}

func dropOf(err error) Drop {
	switch {
	case errors.Is(err, roce.ErrOpcode):
		return DropOpcode
	case errors.Is(err, roce.ErrVersion):
		return DropVersion
	default:
		return DropLength
	}
}

// check applies rules 5 to 8 of §1.13; NumDrops means that all hold.
func check(p *roce.Packet, v *qp.View, rx *transport.Rx) Drop {
	takes := v.Requests
	switch {
	case p.Opcode == roce.OpCNP: // of any state from RTR on (§1.11)
	case p.Opcode.Transport() != transportOf[v.Type]:
		return DropTransport
	case p.Opcode.IsResponse():
		takes = v.Responses
	}
	switch {
	case !takes:
		return DropState
	case rx.Src != v.Peer && v.Type < qp.UD:
		return DropSource
	case (p.PKey^v.PKey)&^fullMember != 0 || (p.PKey|v.PKey)&fullMember == 0:
		return DropPKey
	}
	return NumDrops
}

// transportOf is the opcode class of each type of queue pair.
var transportOf = [...]roce.Transport{qp.RC: roce.RC, qp.UC: roce.UC, qp.UD: roce.UD, qp.GSI: roce.UD}

// fullMember is the bit of a P_Key that two limited members both lack: they may
// not talk to each other.
const fullMember = 0x8000

// maxOurID is the largest IPv4 identification that a NIC of this package sends:
// the index of a packet in a train.
const maxOurID = 127

// sealed checks the ICRC. Where the identification is hidden it is solved for,
// within what the peer is known to send.
func (r *receiver) sealed(b []byte, v *qp.View, rx *transport.Rx, h *roce.Headers) bool {
	switch {
	case r.nic.cfg.NoICRCCheck:
		return true
	case rx.HaveID || !h.Src.Is4():
		return h.Check(b)
	default:
		_, ok := h.CheckAnyID(b, largestID(v))
		return ok
	}
}

// largestID is the largest identification that a peer sends.
func largestID(v *qp.View) uint16 {
	if v.SmallIDs {
		return maxOurID
	}
	return 0xFFFF
}

// seen keeps watch over peers whose packets all fail.
func (r *receiver) seen(q *Queue, h *roce.Headers, ok bool) {
	switch {
	case q.icrcGood.Load():
	case ok:
		q.icrcGood.Store(true)
	default:
		r.suspect(q, h)
	}
}

// suspectAfter is how many packets of a peer must fail, and none be right, before
// it is said that something rewrites them.
const suspectAfter = 8

// suspect counts a bad packet of a peer that never sent a good one.
func (r *receiver) suspect(q *Queue, h *roce.Headers) {
	if q.icrcBad.Add(1) != suspectAfter {
		return
	}
	r.nic.counters.rewritten.Add(1)
	r.unlock() // a logger is the user's code
	r.nic.log.Warn("every packet of a peer fails its ICRC: address or port translation (NAT) or a tunnel on the way rewrites headers, "+
		"which RoCEv2 does not survive; connect the two addresses directly",
		"peer", h.Src, "source port", h.SrcPort, "qpn", uint32(q.qpn), "packets", suspectAfter)
}
