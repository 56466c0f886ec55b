package rc_test

import (
	"fmt"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
)

// differ is an error that shows a recorded packet and ours; either may be nil.
func differ(what string, rec *packet, got *emission) error {
	s := what + "\n recorded: "
	if rec != nil {
		s += fmt.Sprintf("%d %v % x", rec.n, &rec.p, head(rec.p.Payload))
	} else {
		s += "nothing"
	}
	s += "\n ours:     "
	if got != nil {
		s += fmt.Sprintf("%v % x", &got.p, head(got.p.Payload))
	} else {
		s += "nothing"
	}
	return fmt.Errorf("%s", s)
}

func head(b []byte) []byte { return b[:min(len(b), 8)] }

// compareRequests compares the requests that an end of the recording sent with
// ours, in order. Time is checked as they leave (see clock).
func (c *connection) compareRequests(rec []packet, got []emission, a *allowance) error {
	for i := 0; i < len(rec) || len(got) > 0; {
		var r *packet
		var o *emission
		if i < len(rec) {
			r = &rec[i]
		}
		if len(got) > 0 {
			o = &got[0]
		}
		switch {
		case r != nil && o != nil && (wire(&o.p) == wire(&r.p) || o.probe && asksMore(&r.p, &o.p) && a.use(probe)):
			i++
			got = got[1:]
		case r != nil && c.skips(rec, i, a):
			i++
		case o != nil && punctualOnly(rec[:i], r, o) && a.use(punctual):
			got = got[1:]
		default:
			return differ("requests differ", r, o)
		}
	}
	return nil
}

// punctualOnly reports whether ours is a packet that the recorded end had sent
// and would have sent again if its timer had been as fast: r, what it sent next,
// left later.
func punctualOnly(before []packet, r *packet, o *emission) bool {
	if !o.probe || r != nil && !o.at.Before(r.at) {
		return false
	}
	for i := range before {
		if asksMore(&before[i].p, &o.p) || wire(&before[i].p) == wire(&o.p) {
			return true
		}
	}
	return false
}

// asksMore reports whether ours is the recorded packet but for the A bit.
func asksMore(rec, ours *roce.Packet) bool {
	q := *ours
	q.AckReq = false
	return ours.AckReq && !rec.AckReq && wire(&q) == wire(rec)
}

// skips reports whether our engine need not send the recorded packet i. It must
// be the same as before, stand where go-back-N puts it (at the oldest PSN that
// rxe takes as unacknowledged, or after the packet before it), and one of the
// tolerances must say why.
func (c *connection) skips(rec []packet, i int, a *allowance) bool {
	r := &rec[i]
	before := resent(rec[:i], &r.p)
	if before == nil {
		return false
	}
	at := c.offset(r.from, r.p.PSN)
	positive, byRNR := c.acknowledged(r.from, r.pos)
	if at != positive && r.p.PSN != rec[i-1].p.PSN.Add(1) {
		return false
	}
	switch {
	case at < byRNR:
		return a.use(rnrFromPSN)
	case at < positive:
		return a.use(acknowledgedResend)
	case r.at.Sub(before.at) < rc.AckTimeout(c.send.Timeout):
		return a.use(earlyResend)
	default: // a probe went out, and its answer covered this packet
		return at < c.nextAcknowledged(r.from, r.pos) && a.use(probe)
	}
}

// resent returns the newest packet of the list that is the same as p.
func resent(list []packet, p *roce.Packet) *packet {
	for i := len(list) - 1; i >= 0; i-- {
		if wire(&list[i].p) == wire(p) {
			return &list[i]
		}
	}
	return nil
}

// nextAcknowledged is what the first response after position pos acknowledges.
func (c *connection) nextAcknowledged(from side, pos int) int {
	for i := pos + 1; i < len(c.packets); i++ {
		if k := &c.packets[i]; k.from != from && k.p.Opcode.IsResponse() && !k.lost {
			positive, _ := c.acknowledged(from, i+1)
			return positive
		}
	}
	return 0
}

// compareResponses compares the responses of an end of the recording with ours,
// in order. Nothing recorded may be older than what led to ours.
func (c *connection) compareResponses(rec []packet, got []emission, a *allowance) error {
	for i := range rec {
		if i == len(got) {
			return differ("a response is missing", &rec[i], nil)
		}
		r, o := &rec[i], &got[i]
		switch {
		case r.pos <= o.pos:
			return differ("recorded before what ours answers", r, o)
		case wire(&r.p) == wire(&o.p):
		case c.isShortReceive(&r.p, o) && a.use(shortReceive):
		case c.isReadNumbering(rec[i:], o) && a.use(readNumbering):
		default:
			return differ("responses differ", r, o)
		}
	}
	if len(got) > len(rec) {
		return differ("one response too many", nil, &got[len(rec)])
	}
	return nil
}

// isShortReceive: the two NAKs of a SEND that is longer than its receive.
func (c *connection) isShortReceive(rec *roce.Packet, o *emission) bool {
	if c.script == nil || c.script.options[passive]["S"] >= len(c.packets[o.pos].p.Payload) {
		return false
	}
	q := o.p
	q.AETH.Syndrome = roce.SynNakOp
	return o.p.AETH.Syndrome == roce.SynNakInvalid && wire(&q) == wire(rec)
}

// isReadNumbering: the first response to a READ that was asked for again from
// its middle. A Middle has no AETH; ours is that of the answer's end.
func (c *connection) isReadNumbering(rec []packet, o *emission) bool {
	asked := &c.packets[o.pos]
	if asked.p.Opcode != roce.OpReadRequest || asked.p.PSN != o.p.PSN || c.begins(asked) {
		return false
	}
	q := o.p
	switch q.Opcode {
	case roce.OpReadRespFirst:
		for i := range rec {
			if rec[i].p.Opcode == roce.OpReadRespLast {
				if rec[i].p.AETH != q.AETH {
					return false
				}
				break
			}
		}
		q.Opcode = roce.OpReadRespMiddle
	case roce.OpReadRespOnly:
		q.Opcode = roce.OpReadRespLast
	}
	return wire(&q) == wire(&rec[0].p)
}

// begins reports whether a request packet is the first of a message.
func (c *connection) begins(k *packet) bool {
	for i := range c.sends[k.from] {
		if c.sends[k.from][i].first == k.p.PSN {
			return true
		}
	}
	return false
}
