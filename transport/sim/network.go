package sim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport"
)

// Network is a set of hosts and the links between them. Its methods may be
// called from any goroutine, but not from within a Filter.
type Network struct {
	cfg Config // set once

	mu     sync.Mutex // guards everything below, and the hosts' queues
	rng    *rand.Rand
	link   Link // of all pairs that have none of their own
	now    mono.Time
	seq    uint64
	events eventHeap
	frames framePool
	hosts  map[netip.Addr]*Conn
	links  map[linkKey]*linkState
	filter Filter
	asked  Delivery // scratch for the filter
	stats  Counters
	trace  trace

	live  bool
	begin time.Time // clock time at which Run began
	base  mono.Time // virtual time at that moment
	kick  chan struct{}
}

// Counters say what became of packets. Sent + Duplicated is the sum of all other
// fields that name an end, and of those in flight.
type Counters struct {
	Sent       uint64 // by hosts
	Delivered  uint64 // into a receive queue
	Lost       uint64 // by Link.Loss
	Duplicated uint64 // extra copies made
	Filtered   uint64 // dropped by the filter
	Cut        uint64 // dropped because the hosts are cut off from each other
	TooBig     uint64 // larger than the MTU
	QueueFull  uint64 // dropped in front of a link with a Rate
	Malformed  uint64 // corrupted so that no host would take them as RoCEv2
	NoHost     uint64 // nobody has the destination address
	Overflow   uint64 // the host's receive queue was full

	Reordered uint64 // held back by Link.Reorder
	Corrupted uint64 // one bit flipped
	Marked    uint64 // marked CE
}

// New makes a network without hosts. Its virtual time is Start.
func New(cfg Config) *Network {
	cfg = cfg.fill()
	return &Network{
		cfg:   cfg,
		link:  cfg.Link,
		rng:   rand.New(rand.NewPCG(cfg.Seed, 0x68_69_78_6c)),
		now:   Start,
		hosts: make(map[netip.Addr]*Conn),
		links: make(map[linkKey]*linkState),
		kick:  make(chan struct{}, 1),
	}
}

// Host adds a host with one address, unicast and unmapped. A zone is ignored.
// The error is a *transport.OpenError when the address cannot be one or is taken.
func (n *Network) Host(addr netip.Addr) (*Conn, error) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return nil, &transport.OpenError{
			Addr: addr, Kind: transport.ErrNoAddr,
			Err:  fmt.Errorf("not the address of one host"),
			Hint: "give a unicast address such as 10.0.0.1",
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[addr] != nil {
		return nil, &transport.OpenError{
			Addr: addr, Kind: transport.ErrInUse,
			Err:  fmt.Errorf("the simulated network has this host already"),
			Hint: "close the other host first, or choose another address",
		}
	}
	c := &Conn{net: n, addr: addr}
	c.readable.L = &n.mu
	n.hosts[addr] = c
	return c, nil
}

// SetFilter installs f, which is asked about each packet as it is sent, before
// any random fault; nil removes it.
func (n *Network) SetFilter(f Filter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.filter = f
}

// Counters returns what happened so far.
func (n *Network) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// Trace returns a hash over every packet, its times and its fate so far. Equal
// runs have equal traces.
func (n *Network) Trace() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trace.h
}

// InFlight returns the number of packets on the links.
func (n *Network) InFlight() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.events)
}

// Close closes all hosts and drops what is in flight.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.hosts {
		c.closeLocked()
	}
	for len(n.events) > 0 {
		n.frames.put(n.events.pop().f)
	}
	return nil
}

var _ transport.Conn = (*Conn)(nil)

var errClosed = net.ErrClosed
