package cm_test

import (
	"container/heap"
	"flag"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

var (
	netSeed     = flag.Uint64("cm.seed", 1, "seed of TestNetwork; a failure names the one to give")
	netConnects = flag.Int("cm.connects", 10000, "connections that TestNetwork makes")
)

// network is 64 hosts whose MADs get lost, doubled, delayed and overtaken, and
// whose applications connect to each other, accept, refuse, dawdle, send and
// leave, all by one seed and in virtual time.
type network struct {
	t     testing.TB
	rnd   random
	now   mono.Time
	seq   uint64
	todo  happenings
	hosts []*netHost
	byIP  map[netip.Addr]*netHost

	loss, dup int // in 1000
	delay     time.Duration

	started, established, stale        int
	refused, unreachable, disconnected int
	asks, told, untold                 int // questions for datagram queue pairs
}

// happening is something that will be done at a time.
type happening struct {
	at  mono.Time
	seq uint64
	do  func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (n *network) after(d time.Duration, do func()) {
	n.seq++
	heap.Push(&n.todo, happening{n.now.Add(d), n.seq, do})
}

// some returns a random part of a time.
func (n *network) some(d time.Duration) time.Duration { return time.Duration(n.rnd.next() % uint64(d)) }

func (n *network) chance(inThousand int) bool { return n.rnd.below(1000) < inThousand }

// netHost is a host with queue pairs, each a number that is in use until its
// TIMEWAIT is over.
type netHost struct {
	n      *network
	agent  *cm.Agent
	addr   netip.Addr
	armed  mono.Time // a wake-up is planned for then
	inUse  map[roce.QPN]bool
	qps    map[cm.CommID]*netQP
	asked  map[cm.CommID]*netHost // questions for datagram queue pairs, and whom
	sends  []cm.Send
	events []cm.Event
}

// netQP is what an application knows of one connection.
type netQP struct {
	qpn       roce.QPN
	params    cm.QPParams
	active    bool
	connected bool // in RTS
	over      bool // its end is known
	destroyed bool
}

// four and six are the addresses of host i.
func four(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i + 1)}) }

func six(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(i >> 8), 15: byte(i + 1)})
}

func newNetwork(t testing.TB, seed uint64, hosts int, addr func(int) netip.Addr) *network {
	n := &network{t: t, rnd: random(seed), now: mono.Time(time.Second), byIP: map[netip.Addr]*netHost{}}
	for i := range hosts {
		h := &netHost{
			n: n, addr: addr(i),
			inUse: map[roce.QPN]bool{}, qps: map[cm.CommID]*netQP{}, asked: map[cm.CommID]*netHost{},
		}
		rnd := random(n.rnd.next())
		a, err := cm.NewAgent(cm.Config{Addr: h.addr, CAGUID: uint64(i + 1), Rand: rnd.next})
		require.NoError(t, err)
		require.NoError(t, a.Listen(service))
		require.NoError(t, a.Listen(udp))
		h.agent = a
		n.hosts = append(n.hosts, h)
		n.byIP[h.addr] = h
	}
	return n
}

// run lets everything happen that is planned and that follows from it.
func (n *network) run() {
	for len(n.todo) > 0 {
		x := heap.Pop(&n.todo).(happening)
		n.now = x.at
		x.do()
	}
}

// carry takes a MAD to its destination, or not.
func (n *network) carry(from netip.Addr, s cm.Send) {
	copies := 1
	if n.chance(n.loss) {
		copies = 0
	} else if n.chance(n.dup) {
		copies = 2
	}
	to := n.byIP[s.To]
	for range copies {
		d := 50*time.Microsecond + n.some(time.Millisecond)
		if n.chance(100) {
			d = n.some(n.delay)
		}
		mad := s.MAD
		n.after(d, func() {
			to.agent.Handle(n.now, from, mad[:])
			to.settle()
		})
	}
}

// settle does what must follow any call of the agent.
func (h *netHost) settle() {
	for {
		h.events = h.agent.TakeEvents(h.events[:0])
		if len(h.events) == 0 {
			break
		}
		for _, e := range h.events {
			h.on(e)
		}
	}
	h.sends = h.agent.TakeSends(h.sends[:0])
	for _, s := range h.sends {
		h.n.carry(h.addr, s)
	}
	h.arm()
}

func (h *netHost) arm() {
	at := h.agent.Deadline()
	if at == 0 || h.armed != 0 && h.armed <= at && h.armed >= h.n.now {
		return
	}
	h.armed = at
	h.n.after(at.Sub(h.n.now), func() {
		if h.armed == h.n.now {
			h.armed = 0
		}
		h.agent.Expire(h.n.now)
		h.settle()
	})
}

// newQPN takes a number out of a small space, so that numbers come back soon.
func (h *netHost) newQPN() roce.QPN {
	for {
		q := roce.QPN(2 + h.n.rnd.below(1000))
		if !h.inUse[q] {
			h.inUse[q] = true
			return q
		}
	}
}

// connect begins one connection to another host.
func (h *netHost) connect(to *netHost) {
	qpn := h.newQPN()
	id, err := h.agent.Connect(h.n.now, cm.ConnectParams{Peer: to.addr, Service: service, QPN: qpn})
	require.NoError(h.n.t, err)
	require.Nil(h.n.t, h.qps[id], "id in use")
	h.qps[id] = &netQP{qpn: qpn, active: true}
	h.n.started++
	if h.n.chance(20) { // an application that loses patience
		h.n.after(h.n.some(20*time.Second), func() { h.destroy(id) })
	}
	h.settle()
}

// on is the application.
func (h *netHost) on(e cm.Event) {
	n := h.n
	if e.Kind == cm.EventSIDRRequest || h.asked[e.ID] != nil {
		h.onSIDR(e)
		return
	}
	q := h.qps[e.ID]
	if e.Kind != cm.EventConnectRequest {
		require.NotNil(n.t, q, "%v of nothing", e.Kind)
		require.False(n.t, q.over && e.Kind != cm.EventTimewaitExit, "%v after the end", e.Kind)
		require.False(n.t, q.destroyed && e.Kind != cm.EventTimewaitExit, "%v after Destroy", e.Kind)
	}
	switch e.Kind {
	case cm.EventConnectRequest:
		require.Nil(n.t, q, "id in use")
		h.qps[e.ID] = &netQP{}
		h.requested(e)
	case cm.EventConnectResponse:
		q.params, q.connected = e.QP, true
		h.response(e, q)
	case cm.EventEstablished:
		require.False(n.t, q.active)
		h.live(e.ID)
	case cm.EventRejected:
		require.NotZero(n.t, e.Reason)
		n.refused++
		if e.Reason == cm.ReasonStale {
			n.stale++
		}
		q.over = true
	case cm.EventUnreachable:
		n.unreachable++
		q.over = true
	case cm.EventDisconnected:
		n.disconnected++
		q.over = true
	case cm.EventTimewaitExit:
		require.Equal(n.t, q.qpn, e.QPN)
		require.True(n.t, q.over || q.destroyed, "gone without a reason")
		delete(h.inUse, q.qpn)
		delete(h.qps, e.ID)
	default:
		n.t.Fatalf("unexpected %v", e.Kind)
	}
}

// requested: accepts most requests, some of them late.
func (h *netHost) requested(e cm.Event) {
	n := h.n
	d := n.some(time.Millisecond)
	if n.chance(20) {
		d = n.some(100 * time.Second)
	}
	refuse := n.chance(30)
	n.after(d, func() {
		q := h.qps[e.ID]
		if q == nil || q.over {
			return // the peer has not waited
		}
		if refuse {
			require.NoError(n.t, h.agent.Reject(n.now, e.ID, cm.RejectParams{}))
			q.over = true
			h.settle()
			return
		}
		q.qpn = h.newQPN()
		params, err := h.agent.Prepare(e.ID, cm.AcceptParams{QPN: q.qpn})
		require.NoError(n.t, err)
		q.params, q.connected = params, true
		require.NoError(n.t, h.agent.Accept(n.now, e.ID))
		h.settle()
	})
}

// response: the client confirms, most of the time at once, and sends its first
// packet, which establishes the server if it arrives before the RTU.
func (h *netHost) response(e cm.Event, q *netQP) {
	n := h.n
	d := time.Duration(0)
	if n.chance(20) {
		d = n.some(10 * time.Second)
	}
	n.after(d, func() {
		if h.qps[e.ID] != q || q.over || q.destroyed {
			return
		}
		if n.chance(20) {
			require.NoError(n.t, h.agent.Reject(n.now, e.ID, cm.RejectParams{}))
			q.over = true
			h.settle()
			return
		}
		require.NoError(n.t, h.agent.Confirm(e.ID, nil))
		n.established++
		h.checkPeer(q)
		if n.chance(500) {
			n.after(n.some(time.Millisecond), func() { n.byIP[q.params.Peer].packet(q) })
		}
		h.live(e.ID)
		h.settle()
	})
}

// checkPeer compares the attributes of both ends (§5.7). The server is in RTS
// before its REP leaves.
func (h *netHost) checkPeer(q *netQP) {
	t := h.n.t
	for _, p := range h.n.byIP[q.params.Peer].qps {
		if p.qpn == q.params.DestQPN && p.connected && !p.over {
			require.Equal(t, h.addr, p.params.Peer)
			require.Equal(t, q.qpn, p.params.DestQPN)
			require.Equal(t, q.params.SendPSN, p.params.RecvPSN)
			require.Equal(t, q.params.RecvPSN, p.params.SendPSN)
			require.Equal(t, q.params.MTU, p.params.MTU)
			require.LessOrEqual(t, q.params.MaxRead, p.params.MaxDestRead)
			require.LessOrEqual(t, p.params.MaxRead, q.params.MaxDestRead)
			require.Equal(t, q.params.FlowLabel, p.params.FlowLabel)
			return
		}
	}
}

// packet: a packet arrives from a client's queue pair.
func (h *netHost) packet(from *netQP) {
	for id, p := range h.qps {
		if p.qpn == from.params.DestQPN && p.connected && !p.active && p.params.DestQPN == from.qpn && p.params.SendPSN == from.params.RecvPSN {
			if !p.over && !p.destroyed {
				require.NoError(h.n.t, h.agent.Established(id))
				h.settle()
			}
			return
		}
	}
}

// live: after a while this end leaves, one way or another.
func (h *netHost) live(id cm.CommID) {
	n := h.n
	n.after(n.some(5*time.Second), func() {
		q := h.qps[id]
		if q == nil || q.over || q.destroyed {
			return
		}
		if n.chance(100) {
			h.destroy(id)
			return
		}
		if s, _ := h.agent.State(id); s == cm.StateEstablished {
			require.NoError(n.t, h.agent.Disconnect(n.now, id, nil))
			h.settle()
		}
	})
}

func (h *netHost) destroy(id cm.CommID) {
	if q := h.qps[id]; q != nil && !q.over {
		q.destroyed = true
		h.agent.Destroy(h.n.now, id)
		h.settle()
	}
}

// finish asserts that nothing is left anywhere.
func (n *network) finish() {
	for _, h := range n.hosts {
		h.agent.Unlisten(service)
		h.agent.Unlisten(udp)
		require.Empty(n.t, h.asked)
		require.Zero(n.t, h.agent.Usage(), "%v", h.addr)
		require.Empty(n.t, h.qps)
		require.Empty(n.t, h.inUse)
	}
}

func (n *network) summary() string {
	var sum cm.Stats
	for _, h := range n.hosts {
		s := h.agent.Stats()
		for i := range s.Sent {
			sum.Sent[i] += s.Sent[i]
		}
		sum.Resent += s.Resent
		sum.Duplicates += s.Duplicates
		sum.Ignored += s.Ignored
		require.Zero(n.t, s.Unsent+s.Malformed)
	}
	return fmt.Sprintf("%d connects in %v: %d established; ends: %d refused (%d stale), %d unreachable, %d disconnected; %d questions, %d unanswered; sent %v, resent %d, duplicates %d, ignored %d",
		n.started, time.Duration(n.now).Round(time.Second), n.established, n.refused, n.stale, n.unreachable, n.disconnected, n.asks, n.untold,
		sum.Sent, sum.Resent, sum.Duplicates, sum.Ignored)
}

// connects makes connections between random hosts, all within a time.
func (n *network) connects(count int, within time.Duration) {
	for range count {
		n.after(n.some(within), func() {
			from := n.hosts[n.rnd.below(len(n.hosts))]
			from.connect(n.hosts[n.rnd.below(len(n.hosts))])
			if n.chance(200) {
				n.asks++
				from.resolve(n.hosts[n.rnd.below(len(n.hosts))])
			}
		})
	}
	n.run()
}

// Connections between 64 hosts under loss, duplication, delay and reordering: each
// ends, with a reason, exactly once on each side; attributes of both ends match;
// questions for datagram queue pairs between them have one answer each, or none, and
// that is said; no id, queue pair number or timer is left.
func TestNetwork(t *testing.T) {
	t.Logf("replay with -cm.seed=%d", *netSeed)
	n := newNetwork(t, *netSeed, 64, four)
	n.loss, n.dup, n.delay = 50, 50, 3*time.Second
	n.connects(*netConnects, 20*time.Minute)
	t.Log(n.summary())
	n.finish()
	require.Equal(t, *netConnects, n.started)
	require.Greater(t, n.established, *netConnects*8/10)
	require.Equal(t, n.asks, n.told+n.untold)
	require.Greater(t, n.told, *netConnects/10)
}

// The same where most messages do not arrive, or arrive when nobody wants them,
// among few hosts.
func TestBadNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, loss, dup int
		delay            time.Duration
		addr             func(int) netip.Addr
	}{
		"loss":        {8, 500, 50, 3 * time.Second, four},
		"silence":     {8, 1000, 0, time.Second, four},
		"late":        {8, 50, 300, 2 * time.Minute, four},
		"few hosts":   {2, 200, 200, 10 * time.Second, four},
		"itself":      {1, 200, 200, 10 * time.Second, four},
		"no problems": {8, 0, 0, time.Millisecond, four},
		"IPv6":        {8, 200, 100, 10 * time.Second, six},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("replay with -cm.seed=%d", *netSeed)
			n := newNetwork(t, *netSeed, c.hosts, c.addr)
			n.loss, n.dup, n.delay = c.loss, c.dup, c.delay
			n.connects(500, 10*time.Minute)
			t.Log(n.summary())
			n.finish()
		})
	}
}

// A seed gives the same run, to the last counter.
func TestNetworkReplays(t *testing.T) {
	var first string
	for range 2 {
		n := newNetwork(t, *netSeed, 8, four)
		n.loss, n.dup, n.delay = 200, 200, 10*time.Second
		n.connects(300, time.Minute)
		if first == "" {
			first = n.summary()
		}
		require.Equal(t, first, n.summary())
	}
}
