package sim

import (
	"net/netip"
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// linkKey names one direction between two hosts.
type linkKey struct{ src, dst netip.Addr }

// linkState exists for links that differ from the network's, are cut, or must
// remember something.
type linkState struct {
	own  bool // link is set, instead of the network's
	link Link
	cut  bool
	free mono.Time // when the last packet accepted has left (with a Rate)
	last mono.Time // latest arrival given out, which jitter must not undercut
}

// SetLink changes the direction from src to dst. Packets already on the way keep
// their time of arrival.
func (n *Network) SetLink(src, dst netip.Addr, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.state(linkKey{src, dst})
	s.own, s.link = true, n.fit(l)
}

// SetDefaultLink changes all links that SetLink did not.
func (n *Network) SetDefaultLink(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link = n.fit(l)
}

// fit fills in defaults and keeps the MTU within that of the network, which
// hosts have sized their buffers for.
func (n *Network) fit(l Link) Link {
	if l.MTU <= 0 {
		l.MTU = n.cfg.MTU
	}
	l = l.fill()
	l.MTU = min(l.MTU, n.cfg.MTU)
	return l
}

// Cut parts two hosts: packets between them are dropped in both directions,
// those on the way included, until Heal.
func (n *Network) Cut(a, b netip.Addr) { n.setCut(a, b, true) }

// Heal joins two hosts again.
func (n *Network) Heal(a, b netip.Addr) { n.setCut(a, b, false) }

// Partition cuts every host of one side from every host of the other.
func (n *Network) Partition(one, other []netip.Addr) {
	for _, a := range one {
		for _, b := range other {
			n.Cut(a, b)
		}
	}
}

// HealAll joins all hosts again.
func (n *Network) HealAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.links {
		s.cut = false
	}
}

func (n *Network) setCut(a, b netip.Addr, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state(linkKey{a, b}).cut = cut
	n.state(linkKey{b, a}).cut = cut
}

// state returns the state of a link, making it if there is none.
func (n *Network) state(k linkKey) *linkState {
	s := n.links[k]
	if s == nil {
		s = &linkState{}
		n.links[k] = s
	}
	return s
}

// send takes a frame from a host and decides its fate. It owns f.
func (n *Network) send(k linkKey, f *frame) {
	n.stats.Sent++
	n.trace.add('s', n.now, k, f.b)
	var verdict Verdict
	if n.filter != nil {
		verdict = n.ask(k, f)
	}
	if verdict.Drop {
		n.drop('f', &n.stats.Filtered, k, f)
		return
	}
	copies := 1 + max(verdict.Copies, 0)
	link := &n.link
	state := n.links[k]
	if state == nil && (link.Rate > 0 || link.Jitter > 0) {
		// The link must remember when its last packet left or arrived.
		state = n.state(k)
	}
	if state != nil {
		if state.cut {
			n.drop('c', &n.stats.Cut, k, f)
			return
		}
		if state.own {
			link = &state.link
		}
	}
	if n.chance(link.Duplicate) {
		copies++
	}
	for ; copies > 1; copies-- {
		n.stats.Duplicated++
		n.pass(k, link, state, n.frames.clone(f), verdict.Delay)
	}
	n.pass(k, link, state, f, verdict.Delay)
}

// pass puts one copy on the link, or drops it.
func (n *Network) pass(k linkKey, link *Link, state *linkState, f *frame, extra time.Duration) {
	switch {
	case len(f.b) > link.MTU:
		n.drop('m', &n.stats.TooBig, k, f)
		return
	case n.chance(link.Loss):
		n.drop('l', &n.stats.Lost, k, f)
		return
	}
	leaves := n.now
	if link.Rate > 0 {
		var ok bool
		if leaves, ok = n.queue(link, state, f); !ok {
			n.drop('q', &n.stats.QueueFull, k, f)
			return
		}
	}
	at := leaves.Add(link.Delay)
	if link.Jitter > 0 {
		at = at.Add(time.Duration(n.rng.Int64N(int64(link.Jitter) + 1)))
	}
	if state != nil {
		at = max(at, state.last)
		state.last = at
	}
	if n.chance(link.Reorder) {
		n.stats.Reordered++
		at = at.Add(1 + time.Duration(n.rng.Int64N(int64(link.ReorderBy))))
	}
	if n.chance(link.Corrupt) {
		n.stats.Corrupted++
		bit := n.rng.IntN(8 * len(f.b))
		f.b[bit/8] ^= 1 << (bit % 8)
	}
	n.seq++
	n.events.push(event{at: at.Add(max(extra, 0)), seq: n.seq, key: k, f: f})
}

// queue makes f wait for its turn on a link with a rate and returns when its last
// bit has left; false when the queue is full.
func (n *Network) queue(link *Link, state *linkState, f *frame) (mono.Time, bool) {
	start := max(n.now, state.free)
	backlog := int64(start.Sub(n.now)) * (link.Rate / 8) / int64(time.Second)
	if backlog+int64(len(f.b)) > int64(link.QueueBytes) {
		return 0, false
	}
	if link.MarkBytes > 0 && backlog > int64(link.MarkBytes) && f.markCE() {
		n.stats.Marked++
	}
	state.free = start.Add(time.Duration(int64(len(f.b)) * 8 * int64(time.Second) / link.Rate))
	return state.free, true
}

// arrive puts a frame that came through into the queue of whoever has the
// address that the frame names now.
func (n *Network) arrive(e event) {
	if s := n.links[e.key]; s != nil && s.cut {
		n.drop('c', &n.stats.Cut, e.key, e.f)
		return
	}
	if !e.f.parse() {
		n.drop('x', &n.stats.Malformed, e.key, e.f)
		return
	}
	c := n.hosts[e.f.dst]
	if c == nil {
		n.drop('n', &n.stats.NoHost, e.key, e.f)
		return
	}
	if !c.enqueue(e.f) {
		c.stats.RxOverflow++
		n.drop('o', &n.stats.Overflow, e.key, e.f)
		return
	}
	n.stats.Delivered++
	n.trace.add('d', n.now, e.key, e.f.b)
}

func (n *Network) drop(what byte, counter *uint64, k linkKey, f *frame) {
	*counter++
	n.trace.add(what, n.now, k, f.b)
	n.frames.put(f)
}

// chance draws only for probabilities above zero, so that a fault that is off
// does not change the run of the others.
func (n *Network) chance(p float64) bool { return p > 0 && n.rng.Float64() < p }
