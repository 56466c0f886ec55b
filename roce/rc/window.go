package rc

import (
	"time"

	"github.com/gohixl/hixl/roce/wr"
)

// Sizes of the window, in packets, and how it changes.
const (
	// firstWindow is what a connection begins with. It doubles with each round
	// trip until something is lost.
	firstWindow = 64
	// minWindow is what loss leaves: enough that what follows a gap tells of it,
	// and that few losses are left to the timer.
	minWindow = 16
	// A loss takes a lossCut-th away, and what was acknowledged gives a growth-th
	// back, or a slowGrowth-th where more would only stand in a queue. So with one
	// packet in n lost it settles below n.
	lossCut    = 4
	growth     = 4
	slowGrowth = 32
	// fullAfter is how many losses in a row must follow long round trips until a queue
	// that overflows is taken for their cause.
	fullAfter = 3
	// calmAfter is how many packets in a row must be delivered until the network is
	// taken for one that loses none.
	calmAfter = 4096
	// shortQueue is how long packets may wait on their way without a queue being
	// seen in it: processors work in bursts.
	shortQueue = 100 * time.Microsecond
)

// window bounds what is unacknowledged (§3.5, §7.2): in bytes, weighed with
// [wr.PacketCost], by a constant; in packets, or for READs those of their
// answers, by what is seen of the network.
//
// A peer that misses a packet drops all that follow it (§4.2), so each loss costs
// what was in flight, and a window is best as large as what the way and a short
// queue hold: a smaller one leaves gaps, a larger one is only more to send again.
// That is measured (see measured). Where the loss is so heavy that not even as
// much gets through in one piece, the window goes by how often packets are lost.
// Each resend is for a gap of its own, since it begins anew with everything
// behind the gap, and so each counts.
//
// A window that loses because it overflows a queue would do so again each time it
// has grown. Then round trips are long before each loss, while losses by chance come
// after any. As long as that is so, the window is what the way holds with a little in
// the queue, and no growth goes beyond it. Long round trips alone say nothing: hosts
// that are slow to wake up have them too, and smaller windows make none shorter.
type window struct {
	maxBytes uint64
	max      uint64
	packets  uint64 // now
	pipe     uint64 // what the way and a short queue hold; 0: not known
	grown    uint64 // what growth has gathered, less than a packet, in packets times slowGrowth
	inRow    uint64 // packets delivered since the last loss, or since ever
	recover  uint64 // no congestion counts before this sequence number is acknowledged
	lossless bool   // so far
	full     uint8  // losses in a row that a queue's overflow explains, up to fullAfter
}

func (w *window) init(s *SendConfig, mtu uint64) {
	*w = window{maxBytes: max(uint64(s.WindowBytes), mtu+wr.PacketCost), max: uint64(s.WindowPSNs), lossless: true}
	w.packets = min(firstWindow, w.max)
}

// least is what loss leaves.
func (w *window) least() uint64 { return min(minWindow, w.max) }

// admits reports whether so many packets that weigh cost may be unacknowledged.
func (w *window) admits(packets, cost uint64) bool { return packets <= w.packets && cost <= w.maxBytes }

// acked lets the window grow after packets of the flight were acknowledged, if it
// was of use.
func (w *window) acked(packets, flight uint64) {
	w.inRow += packets
	if 2*flight < w.packets {
		return
	}
	switch {
	case w.lossless:
		packets *= slowGrowth
	case w.pipe == 0 || w.packets < w.pipe:
		packets *= slowGrowth / growth
	case w.overflows():
		return
	}
	w.grown += packets
	w.packets = min(w.max, w.packets+w.grown/slowGrowth)
	w.grown %= slowGrowth
}

// measured takes a sample: so many packets were delivered in the time took. The
// shortest round trip lately is least: what is delivered in twice that time, or in
// that of a short queue, is what the pipe holds. Where a queue overflows it is an
// eighth above that time instead of twice. A flight that did not fill the window shows
// only that it holds as much.
func (w *window) measured(packets uint64, took, least time.Duration) {
	room := 2 * least
	if w.overflows() {
		room = least + least/8
	}
	fits := packets * uint64(min(max(room, shortQueue), time.Second)) / uint64(max(took, 1))
	if fits < w.pipe && 2*packets < w.packets {
		return
	}
	if w.pipe > 0 {
		fits = (3*w.pipe + fits + 3) / 4
	}
	w.pipe = fits
}

// lost makes the window smaller because what was sent has to be sent again.
func (w *window) lost() {
	w.lossless, w.inRow = false, 0
	n := w.packets - w.packets/lossCut
	if w.pipe > 0 {
		n = min(n, w.pipe)
	}
	w.packets = max(w.least(), n)
}

// blame takes into account that the last round trip before a loss was a long one, or
// was not.
func (w *window) blame(long bool) {
	if !long {
		w.full = 0
	} else if w.full < fullAfter {
		w.full++
	}
}

// overflows reports whether it is a queue's overflow that loses packets.
func (w *window) overflows() bool { return w.full >= fullAfter }

// calm reports whether nothing has been lost lately.
func (w *window) calm() bool { return w.lossless || w.inRow >= calmAfter }

// congested halves the window for a congestion notification, once for what is in
// flight: from una to hi.
func (w *window) congested(una, hi uint64) {
	if una < w.recover || una == hi {
		return
	}
	w.recover, w.lossless, w.inRow = hi, false, max(w.inRow, calmAfter)
	w.packets = max(w.least(), w.packets/2)
}

// ackEvery returns after how many packets one asks for an acknowledgement, at
// most n: often enough that a small window moves on in steps.
func (w *window) ackEvery(n int) int {
	least := minWindow / 4
	if w.lossless {
		least = MinAckEvery
	}
	return min(n, max(int(w.packets/4), least))
}
