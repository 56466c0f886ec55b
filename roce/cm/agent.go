package cm

import (
	"net/netip"
	"slices"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

// maxUnsent bounds the queue of MADs: they travel unreliably anyway.
const maxUnsent = 1 << 14

// Agent is the connection manager of one NIC. Its methods must not be called at
// the same time. Times are of one monotonic clock and do not go back.
type Agent struct {
	cfg   Config
	ids   idSource
	tidHi uint64 // the upper half of our transaction ids

	// conns holds every connection by its own id, from Connect or REQ until
	// TimewaitExit.
	conns map[CommID]*conn
	// byRemote finds duplicates: connections whose peer's id is known, until
	// TimewaitExit (§5.9).
	byRemote map[remoteID]*conn
	// byQPN finds stale connections: those whose peer's QPN is known, until we
	// disconnect or TIMEWAIT begins (§5.9).
	byQPN map[remoteQPN]*conn
	// halfOpen counts passive connections that are not established, perPeer the
	// same and pending SIDR requests for each address.
	halfOpen int
	perPeer  map[netip.Addr]int

	listeners map[ServiceID]struct{}

	sidrs    map[CommID]*sidr
	bySIDR   map[sidrKey]*sidr
	answered []CommID // in order of their answers

	timers timers
	sends  []Send
	events []Event
	stats  Stats
}

// remoteID and remoteQPN key connections by what their peer says of itself, bound
// to the address it says it from.
type remoteID struct {
	peer netip.Addr
	guid uint64
	id   CommID
}

type remoteQPN struct {
	peer netip.Addr
	guid uint64
	qpn  roce.QPN
}

// NewAgent returns an agent without connections. A wrong configuration is a
// *[ParamError].
func NewAgent(cfg Config) (*Agent, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return &Agent{
		cfg:       cfg,
		ids:       idSource{rand: cfg.Rand},
		tidHi:     cfg.Rand() &^ (1<<32 - 1),
		conns:     make(map[CommID]*conn),
		byRemote:  make(map[remoteID]*conn),
		byQPN:     make(map[remoteQPN]*conn),
		perPeer:   make(map[netip.Addr]int),
		listeners: make(map[ServiceID]struct{}),
		sidrs:     make(map[CommID]*sidr),
		bySIDR:    make(map[sidrKey]*sidr),
	}, nil
}

// Listen makes REQs (TCP and IB port space, service ids that are no IP ones) or
// SIDR_REQs (UDP and IPoIB port space) for a service id events. The error unwraps
// to [ErrListening].
func (a *Agent) Listen(s ServiceID) error {
	if _, ok := a.listeners[s]; ok {
		return &ListenError{Service: s}
	}
	a.listeners[s] = struct{}{}
	return nil
}

// Unlisten ends Listen. Requests that were reported must still be answered.
func (a *Agent) Unlisten(s ServiceID) { delete(a.listeners, s) }

// Deadline returns when [Agent.Expire] must be called; 0 is never.
func (a *Agent) Deadline() mono.Time { return a.timers.next() }

// Expire does what is due: resends, gives up, ends TIMEWAIT. To call it early or
// again does nothing.
func (a *Agent) Expire(now mono.Time) {
	for t := a.timers.due(now); t != nil; t = a.timers.due(now) {
		t.fire(now)
	}
}

// TakeSends appends the queued MADs to buf, in the order to send them, and empties
// the queue. What it holds beyond 16384 MADs is lost.
func (a *Agent) TakeSends(buf []Send) []Send {
	buf = append(buf, a.sends...)
	a.sends = trim(a.sends)
	return buf
}

// TakeEvents appends the events since the last call to buf and empties the queue.
// It must be called after every other call: events are not dropped.
func (a *Agent) TakeEvents(buf []Event) []Event {
	buf = append(buf, a.events...)
	clear(a.events)
	a.events = trim(a.events)
	return buf
}

// trim empties a queue and gives up storage that only a burst needed.
func trim[T any](q []T) []T {
	if cap(q) > 256 {
		return nil
	}
	return q[:0]
}

// Shutdown destroys every connection and SIDR exchange and stops listening. The
// MADs that say so to the peers are queued.
func (a *Agent) Shutdown(now mono.Time) {
	clear(a.listeners)
	ids := make([]CommID, 0, len(a.conns)+len(a.sidrs))
	for id := range a.conns {
		ids = append(ids, id)
	}
	for id := range a.sidrs {
		ids = append(ids, id)
	}
	slices.Sort(ids) // maps have no order, runs must replay
	for _, id := range ids {
		a.Destroy(now, id)
	}
}

// State returns the state of a connection; ok is false when there is none.
func (a *Agent) State(id CommID) (s State, ok bool) {
	c := a.conns[id]
	if c == nil {
		return 0, false
	}
	return c.state, true
}

func (a *Agent) event(e Event) { a.events = append(a.events, e) }

// post queues a message.
func (a *Agent) post(to netip.Addr, flowLabel uint32, class uint8, m Message) {
	s := Send{To: to, FlowLabel: flowLabel, TrafficClass: class}
	m.Append(s.MAD[:0])
	a.queue(&s)
}

func (a *Agent) queue(s *Send) {
	if len(a.sends) >= maxUnsent {
		a.stats.Unsent++
		return
	}
	a.stats.Sent[be.Uint16(s.MAD[16:])-uint16(AttrREQ)]++
	a.sends = append(a.sends, *s)
}

// newID draws an id that names nothing yet.
func (a *Agent) newID() CommID {
	return a.ids.draw(func(id CommID) bool {
		_, sidr := a.sidrs[id]
		return sidr || a.conns[id] != nil
	})
}

// tid makes a transaction id of our own.
func (a *Agent) tid(id CommID) uint64 { return a.tidHi | uint64(id) }

// local is our address as messages name it.
func (a *Agent) local() netip.Addr { return a.cfg.Addr.WithZone("") }

// busy counts a half-open connection or pending SIDR request of a peer.
func (a *Agent) busy(peer netip.Addr, n int) {
	if a.perPeer[peer] += n; a.perPeer[peer] <= 0 {
		delete(a.perPeer, peer)
	}
}
