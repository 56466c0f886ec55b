package chaostest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport/sim"
)

// Links of a network that goes on, one that loses, doubles and reorders, and one on
// which packets may come seconds late.
var (
	good = sim.Link{Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond}
	bad  = sim.Link{Delay: 50 * time.Microsecond, Jitter: time.Millisecond, Loss: 0.05, Duplicate: 0.05, Reorder: 0.1, ReorderBy: 5 * time.Millisecond}
	slow = sim.Link{Delay: time.Millisecond, Jitter: 500 * time.Millisecond, Loss: 0.02, Duplicate: 0.2, Reorder: 0.5, ReorderBy: 8 * time.Second}
)

// peers is how every context treats its peers.
var peers = hixl.PeerConfig{
	SendQueue: 16, KeepAlive: 15 * time.Second, Notifications: 64, Connect: hixl.ConnectOptions{Timeout: 14, Retries: 3},
	Recovery: hixl.RecoveryConfig{Min: 50 * time.Millisecond, Max: 5 * time.Second, GiveUp: 20 * time.Second},
}

// world is a simulated network of nodes on virtual time, which goes from one event to
// the next.
type world struct {
	seed  uint64
	rng   *rand.Rand
	net   *sim.Network
	nodes []*node
	now   mono.Time
	quiet bool // nothing new is begun

	stores int
	all    []*store
	ops    uint64          // begun
	told   map[uint64]int  // notifications, by operation
	expect map[uint64]*hop // acknowledged notifications
	locks  []*lockHome
	next   mono.Time // of the next thing to go wrong
	heal   []repair
	errs   []error
	course uint64 // hash of what has happened
	tally  map[string]int
}

// repair ends something that went wrong.
type repair struct {
	at mono.Time
	do func()
}

// node is a host: one context at a time.
type node struct {
	w    *world
	i    int
	addr netip.AddrPort
	life int // incarnations so far

	conn    *sim.Conn
	c       *hixl.Context // nil while it is down
	ear     *hixl.PeerListener
	guests  []*hixl.Peer // accepted
	data    *store       // published
	old     []*store     // that it has had
	src     *hixl.Region // what it writes, and reads into
	stopped bool
	due     mono.Time // when to poll
	taken   uint64    // notifications
	known   int       // peers
	flows   []*flow
}

func newWorld(seed uint64, n int) *world {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x6368616f73)), told: map[uint64]int{}, expect: map[uint64]*hop{}, tally: map[string]int{},
		net: sim.New(sim.Config{Seed: seed, Link: good, HideHeaders: seed%2 == 0}),
	}
	w.now = w.net.Now()
	for i := range n {
		nd := &node{w: w, i: i, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 94, 0, byte(1 + i)}), 18515)}
		w.nodes = append(w.nodes, nd)
		nd.boot()
	}
	for _, nd := range w.nodes {
		for k, step := range [fans]int{1, 2, 5, 9} {
			to := w.nodes[(nd.i+step)%n]
			for _, kind := range []flowKind{flowWrites, flowReads} {
				nd.flows = append(nd.flows, &flow{n: nd, to: to, k: k, kind: kind, at: w.now.Add(w.upTo(2 * time.Second))})
			}
		}
	}
	w.makeLocks()
	w.next = w.now.Add(time.Second)
	return w
}

// upTo is a random time.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// log notes a step of the course, which equal seeds share.
func (w *world) log(format string, args ...any) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d ", w.course, w.now) // never fails
	_, _ = fmt.Fprintf(h, format, args...)
	w.course = h.Sum64()
	if trace {
		fmt.Printf("%12.6f %s\n", time.Duration(w.now).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf("at %v: "+format, append([]any{time.Duration(w.now)}, args...)...))
}

// boot starts a node, with memory of its own.
func (n *node) boot() {
	w := n.w
	n.life++
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var err error
	n.conn, err = w.net.Host(n.addr.Addr())
	must(err)
	cfg := peers
	cfg.Seed = w.seed<<20 + uint64(n.i)<<10 + uint64(n.life)
	n.c, err = hixl.Open(hixl.Config{Transport: n.conn, Clock: w.net.Now, Stepped: true, MaxRegions: 256, MaxQPs: 1024, Peers: cfg})
	must(err)
	n.src, err = n.c.Register(make([]byte, 2*fans*slotStep), hixl.LocalWrite)
	must(err)
	n.ear, err = n.c.Listen(over, n.addr.String())
	must(err)
	n.publish()
	n.due = w.now
	w.log("node %d boots", n.i)
}

// publish gives the node a new store under the name of the old.
func (n *node) publish() {
	n.w.stores++
	s, err := newStore(n.w.stores, n.c)
	if err == nil {
		err = n.c.Publish("data", s.region)
	}
	if err != nil {
		panic(err)
	}
	n.data = s
	n.old = append(n.old, s)
	n.w.all = append(n.w.all, s)
}

// down ends a node: nothing of it leaves any more, unless it is told to end in order.
func (n *node) down(inOrder bool) {
	w := n.w
	w.log("node %d goes, in order: %v", n.i, inOrder)
	if !inOrder {
		_ = n.conn.Close()
	}
	nic := n.c.NIC()
	if err := n.c.Close(); err != nil && inOrder {
		w.fail("node %d does not close: %v", n.i, err)
	}
	for _, f := range n.flows {
		f.orphan()
	}
	if q := nic.Stats().QPs; q != 0 {
		w.fail("node %d has %d queue pairs when it is closed", n.i, q)
	}
	n.data.end()
	for _, h := range w.locks {
		h.left(n)
	}
	n.c, n.guests, n.stopped, n.src = nil, nil, false, nil
	n.taken, n.known = 0, 0
}

// settle lets all nodes do what can be done now.
func (w *world) settle() {
	for worked := true; worked; {
		worked = false
		for _, n := range w.nodes {
			if n.c == nil || n.stopped || n.due > w.now && n.conn.Waiting() == 0 {
				continue
			}
			n.c.Poll(w.now)
			n.take()
			n.act()
			if n.due = mono.Earliest(n.c.Next(), n.nextAct()); n.due.IsZero() {
				n.due = never
			}
			worked = worked || n.due <= w.now
		}
	}
}

// never is a time that does not come.
const never = mono.Time(1 << 62)

// take takes the notifications of all who dial the node.
func (n *node) take() {
	s := n.c.Stats()
	if s.Notifications == n.taken && s.Peers == n.known {
		return
	}
	n.taken, n.known = s.Notifications, s.Peers
	for {
		p, err := n.ear.Accept(over)
		if err != nil {
			break
		}
		n.guests = append(n.guests, p)
	}
	kept := n.guests[:0]
	for _, p := range n.guests {
		for {
			x, err := p.Notifications(over)
			if err != nil {
				break
			}
			n.notified(&x)
		}
		if p.State() != hixl.PeerClosed {
			kept = append(kept, p)
		}
	}
	n.guests = kept
}

// step settles and goes to the next event, or to a time.
func (w *world) step(end mono.Time) {
	w.settle()
	next := mono.Earliest(w.net.Next(), end)
	for _, n := range w.nodes {
		if n.c != nil && !n.stopped {
			next = mono.Earliest(next, n.due)
		}
	}
	if !w.quiet {
		next = mono.Earliest(next, w.next)
	}
	for i := range w.heal {
		next = mono.Earliest(next, w.heal[i].at)
	}
	w.now = min(max(next, w.now+1), end)
	w.net.Advance(w.now)
	for i := 0; i < len(w.heal); i++ {
		if r := w.heal[i]; r.at <= w.now {
			w.heal = append(w.heal[:i], w.heal[i+1:]...)
			i--
			r.do()
		}
	}
	if !w.quiet && w.next <= w.now {
		w.next = w.now.Add(w.upTo(10 * time.Second))
		w.harm()
	}
}

// later has something done at a time.
func (w *world) later(d time.Duration, do func()) {
	w.heal = append(w.heal, repair{w.now.Add(d), do})
}
