package nic

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/transport"
)

// NIC is a software RDMA NIC on one address. Make one with [Open].
type NIC struct {
	// Set once.
	cfg       Config
	conn      transport.Conn
	local     netip.Addr
	clock     func() mono.Time
	nap       func(time.Duration)
	log       *slog.Logger
	table     *mr.Table
	qps       *qpnTable
	events    *qp.EventQueue
	rx        []*receiver   // a power of two of them
	pathLimit int64         // of each path
	fewPorts  bool          // the transport has only some source ports
	wake      chan struct{} // capacity 1: the service goroutine has work
	quit      chan struct{} // closed by Close

	counters  counters
	paths     paths
	late      lateTable
	spare     heldPool
	attached  atomic.Pointer[attachment]
	woken     atomic.Bool // the attached service is to be run
	noTrains  atomic.Bool
	datagrams atomic.Bool  // there are or were queue pairs that tell their users the TOS
	noYield   atomic.Int64 // mono.Time before which nobody yields
	closing   atomic.Bool
	broken    atomic.Pointer[DeviceError]
	group     sync.WaitGroup

	svcMu sync.Mutex // held by who serves timers and late memory
	svc   *sender    // guarded by svcMu, as the scratch below
	due   []*Queue
	over  []*lateOp

	mu       sync.Mutex
	started  bool     // guarded by mu, as all below
	closed   bool     // nothing is deferred any more
	deferred []*Queue // to be drained by the service goroutine
	past     rc.Stats // of closed queue pairs
}

// Open makes a NIC on an open transport, which it owns from then on. It does
// nothing until [NIC.Start] or, stepped, [NIC.Poll].
func Open(cfg Config) (*NIC, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	table, err := mr.NewTable(mr.Config{MaxRegions: cfg.MaxRegions})
	if err != nil {
		return nil, err
	}
	qps, err := newQPNTable(cfg.MaxQPs)
	if err != nil {
		return nil, err
	}
	n := &NIC{
		cfg: cfg, conn: cfg.Conn, local: cfg.Conn.LocalAddr(), clock: cfg.Clock, nap: nap, log: cfg.Logger,
		table: table, qps: qps, events: qp.NewEventQueue(cfg.Events),
		wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	n.noTrains.Store(cfg.NoTrains)
	n.fewPorts = fewPorts(cfg.Conn)
	n.pathLimit = pathLimit(cfg.PathWindow, cfg.Conn.Caps().RxHolds)
	parts := []transport.Reader{cfg.Conn}
	if c, ok := cfg.Conn.(transport.Sharded); ok {
		parts = c.Shards()
	}
	for i, part := range parts {
		n.rx = append(n.rx, newReceiver(n, i, part))
	}
	n.svc = newSender(n)
	return n, nil
}

// Addr returns the NIC's address.
func (n *NIC) Addr() netip.Addr { return n.local }

// MTU returns the largest path MTU of its queue pairs.
func (n *NIC) MTU() roce.PathMTU { return n.cfg.MTU }

// Conn returns the transport.
func (n *NIC) Conn() transport.Conn { return n.conn }

// AllocPD makes a protection domain.
func (n *NIC) AllocPD() *mr.PD { return n.table.AllocPD() }

// Events returns the asynchronous events.
func (n *NIC) Events() <-chan qp.Event { return n.events.C() }

// EventQueue returns the queue for shared receive queues to put their events in.
func (n *NIC) EventQueue() *qp.EventQueue { return n.events }

// CreateQP makes a queue pair in RESET. QPN, Local, MaxMTU, MaxPending and Events
// of cfg are the NIC's to fill in.
func (n *NIC) CreateQP(cfg qp.Config) (*Queue, error) {
	if n.closing.Load() {
		return nil, ErrClosed
	}
	if err := n.broken.Load(); err != nil {
		return nil, err
	}
	if cfg.PD != nil && cfg.PD.Table() != n.table {
		return nil, &ConfigError{"PD", cfg.PD, "a protection domain of the same NIC"}
	}
	reserve := n.qps.reserve
	if cfg.Type == qp.GSI {
		reserve = n.qps.reserveGSI
	}
	qpn, err := reserve()
	if err != nil {
		return nil, err
	}
	cfg.QPN, cfg.Local, cfg.MaxMTU, cfg.MaxPending, cfg.Events = qpn, n.local, n.cfg.MTU, maxPlacing, n.events
	cfg.MaxWindow = int(n.pathLimit)
	pair, err := qp.New(cfg)
	if err != nil {
		n.qps.cancel(qpn)
		return nil, err
	}
	q := &Queue{QP: pair, nic: n, qpn: qpn, rx: n.rx[int(qpn)&(len(n.rx)-1)]}
	if cfg.Type == qp.UD {
		n.datagrams.Store(true)
	}
	q.drivenBy(cfg.SendSink)
	q.drivenBy(cfg.RecvSink)
	q.idle.L = pair
	n.qps.put(q)
	if n.closing.Load() { // Close may have missed it
		q.Close()
		return nil, ErrClosed
	}
	return q, nil
}

// retire ends a queue pair that is in the table no more.
func (n *NIC) retire(q *Queue) {
	stats := q.Stats()
	if n.closing.Load() {
		q.QP.Shut() // a poster may still be about to wait
	} else {
		q.QP.Close()
	}
	q.rx.timers.drop(q)
	q.Lock()
	p := q.path
	q.leavePath()
	q.Unlock()
	if p != nil && p.ready() {
		n.turns(p)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	addRC(&n.past, stats)
}

// trains are the limits for trains, zero when they are off.
func (n *NIC) trains() transport.Trains {
	if n.noTrains.Load() {
		return transport.Trains{}
	}
	t := n.conn.Caps().Trains
	t.MaxSegments = min(t.MaxSegments, maxOurID+1)
	return t
}

// trainsOff notes that the transport cannot send trains here.
func (n *NIC) trainsOff() {
	if !n.noTrains.Swap(true) {
		n.log.Info("trains of packets are off: the device does not take them")
	}
}

// flush drains a queue pair on the caller's goroutine.
func (n *NIC) flush(now mono.Time, q *Queue) {
	s := q.rx.spare.borrow(n)
	s.flush(now, q)
	q.rx.spare.giveBack(s)
}

// turns lets queue pairs that wait for a path send.
func (n *NIC) turns(p *path) {
	q := p.pop()
	if q == nil || n.closing.Load() {
		return
	}
	n.flush(n.clock(), q) // and those behind it
}

// later leaves queue pairs to the service goroutine, if there is one.
func (n *NIC) later(qs []*Queue) bool {
	n.mu.Lock()
	if !n.started || n.closed {
		n.mu.Unlock()
		return false
	}
	n.deferred = append(n.deferred, qs...)
	n.mu.Unlock()
	n.kick()
	return true
}

// kick wakes the service goroutine.
func (n *NIC) kick() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counters.
func (n *NIC) Stats() Stats {
	c := &n.counters
	s := Stats{
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(), TxTrains: c.txTrains.Load(),
		SendErrors: c.sendErrors.Load(), Rewritten: c.rewritten.Load(), EventsLost: n.events.Dropped(),
		QPs: n.qps.count(), Transport: n.conn.Stats(),
	}
	for _, r := range n.rx {
		s.addShard(r)
	}
	n.mu.Lock()
	s.RC = n.past
	n.mu.Unlock()
	n.qps.all(func(q *Queue) { addRC(&s.RC, q.Stats()) })
	return s
}
