package rc

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

// probe is how a requester breaks a silence (§3.12): it sends the oldest unanswered
// packet again, alone. The silence is over with the answer, but that does not tell
// whether anything was lost: a peer that had no processor answers the first copies one
// by one, each READ in a packet of its own, and the first of these answers looks like
// one to the probe. So what follows is the last packet that was sent, or new ones if
// there are any. Of a peer that misses what is before it, it brings a NAK, or an answer
// that passes the gap; of one that was only slow, nothing of interest.
type probe struct {
	end uint64 // of the probe
	// asked is what was unanswered when the end was asked for. If it still is at the next
	// timeout, the peer tells no gap, and an answer that ends at the probe is taken for
	// one.
	asked uint64
	state probeState
	twice bool // this is the second probe since then
}

type probeState uint8

const (
	probeNone probeState = iota
	probeDue             // it is to be sent
	probeSent            // its answer is waited for
	probeEnd             // there was an answer, and the last packet is to be sent
)

// owed reports whether a packet is to be sent for it.
func (p *probe) owed() bool { return p.state == probeDue || p.state == probeEnd }

// settle has nothing more asked for.
func (p *probe) settle() {
	if p.state == probeEnd {
		p.state = probeNone
	}
}

// silent reports whether an answer to the probe, or any other, is waited for.
func (r *requester) silent() bool { return r.probe.state == probeDue || r.probe.state == probeSent }

// startProbe begins a probe at the oldest unanswered packet.
func (r *requester) startProbe() {
	r.probe.state, r.probe.twice = probeDue, r.probe.asked == r.una
	r.nakDone = false
	r.rtt.cancel()
}

// judgeProbe learns from an answer. One that tells what is wrong shows no other loss.
func (r *requester) judgeProbe(tells bool) {
	p := &r.probe
	switch {
	case r.una >= r.hi:
		p.state = probeNone
	case p.state == probeDue: // it was too early
		p.state = probeNone
	case p.state != probeSent || r.una < p.end:
	case p.twice && r.una == p.end && !tells:
		r.lost()
	default:
		p.state, p.asked = probeEnd, r.una
	}
}

// sendProbe emits the packet that is owed.
func (r *requester) sendProbe(now mono.Time, b *wr.Batch) (more bool) {
	p := &r.probe
	if !p.owed() {
		return false
	}
	if !b.Room() {
		return true
	}
	if p.state == probeDue {
		p.end = r.again(now, b, r.ack, r.una)
		p.state = probeSent
		return false
	}
	p.state = probeNone
	if r.send > r.una {
		index, seq := r.lastSent()
		r.again(now, b, index, seq)
	}
	return false
}

// lastSent returns the request and the sequence number of the last packet before send.
func (r *requester) lastSent() (index, seq uint64) {
	index = r.cur
	if index == r.q.Tail || r.q.At(index).First == r.send {
		index--
	}
	w := r.q.At(index)
	i := r.send - w.First - 1
	if w.Op == wr.OpRead { // one packet asks for a part of it
		i -= i % r.readChunk
	}
	return index, max(w.First+i, r.una)
}

// again emits the packet at seq of a request once more, out of turn, and returns where
// it ends.
func (r *requester) again(now mono.Time, b *wr.Batch, index, seq uint64) (end uint64) {
	send, cur, rdOut, sinceAck := r.send, r.cur, r.rdOut, r.sinceAck
	r.send, r.cur = seq, index
	w := r.q.At(index)
	n := r.step(w, seq-w.First)
	r.c.common.stats.Retransmitted++
	r.emit(now, b, w, seq-w.First, n, true)
	r.send, r.cur, r.rdOut, r.sinceAck = send, cur, rdOut, sinceAck
	return seq + n
}
