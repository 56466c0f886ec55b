package xdp

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// Conn owns one local address on one link.
type Conn struct {
	cfg    Config     // set once, as all up to kernel
	opened netip.Addr // with its zone
	addr   netip.Addr
	link   *linkState
	mode   Mode
	mem    *memory
	linear linear
	queues []*queue
	steer  *steering
	watch  *watcher
	paths  *paths
	kernel kernel
	bell   int

	all    *part
	life   sync.RWMutex // held for reading by who uses sockets and rings
	closed atomic.Bool
	dead   atomic.Pointer[LinkError]
	stats  atomic.Pointer[transport.Stats] // the last ones, after Close
}

var (
	_ transport.Lender  = (*Conn)(nil)
	_ transport.Sharded = (*Conn)(nil)
)

// Open takes UDP port 4791 of addr, an address of this host, and puts the program
// on its link; IPv6 link-local addresses need their zone. The error is a
// *transport.OpenError, with transport.ErrInUse when somebody has the port, the
// link or a queue of it already, transport.ErrPermission when a capability is
// missing, ErrUnsupported when link or kernel cannot do it; or a
// *transport.ConfigError. The Conn belongs to the network namespace of the calling
// thread.
func Open(addr netip.Addr, cfg Config) (*Conn, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	addr = addr.Unmap()
	c := &Conn{cfg: cfg, opened: addr, addr: addr.WithZone(""), bell: -1, paths: newPaths()}
	c.kernel.raw = -1
	if err := c.open(); err != nil {
		c.teardown()
		return nil, err
	}
	c.all = newPart(c, c.queues, true)
	c.watch.start(c)
	return c, nil
}

func (c *Conn) open() (err error) {
	// First the socket: it tells in the usual words what is wrong with an address,
	// and that somebody has the port.
	if err := c.kernel.open(c); err != nil {
		if denied(err) {
			return &transport.OpenError{Addr: c.addr, Kind: transport.ErrPermission, Err: err, Hint: privilegeHint()}
		}
		return err
	}
	if c.watch, err = newWatcher(); err != nil {
		return &transport.OpenError{Addr: c.addr, Err: err, Hint: "netlink sockets are needed to follow routes and neighbours"}
	}
	if c.link, err = findLink(c.watch.h, c.opened, &c.cfg); err != nil {
		return err
	}
	if c.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return setupError(c.addr, c.link, "making an eventfd", err)
	}
	queues := c.cfg.Queues
	if queues == 0 {
		queues = min(queuesOf(c.watch.h, c.link), MaxQueues)
	}
	if c.steer, err = load([]netip.Addr{c.addr}, queues, true); err != nil {
		return setupError(c.addr, c.link, "loading the XDP program", err)
	}
	if c.mode, err = c.steer.attach(c.link.index, c.cfg.Mode); err != nil {
		return setupError(c.addr, c.link, "attaching the XDP program", err)
	}
	return c.openQueues(queues)
}

// openQueues makes the memory and a socket for each queue. Where frames longer
// than a chunk are not possible, the MTU is lowered to what is.
func (c *Conn) openQueues(n int) error {
	mtu := int(c.link.most)
	err := c.tryQueues(n, mtu)
	const single = largeChunk - headroom
	if err != nil && mtu > single && !taken(err) && !denied(err) {
		c.closeQueues()
		c.link.most = single
		c.link.mtu.Store(min(c.link.mtu.Load(), single))
		err = c.tryQueues(n, single)
	}
	if err != nil {
		return setupError(c.addr, c.link, "opening AF_XDP sockets", err)
	}
	for _, q := range c.queues {
		if err := c.steer.steer(q.id, q.rings.fd); err != nil {
			return setupError(c.addr, c.link, "steering to an AF_XDP socket", err)
		}
	}
	return nil
}

func (c *Conn) tryQueues(n, mtu int) (err error) {
	l := layoutFor(mtu, n, c.cfg.RxFrames, c.cfg.TxFrames)
	if c.mem, err = newMemory(l); err != nil {
		return err
	}
	c.linear.size = [2]int{mtu + etherLen + 2*tagLen, 1<<16 + headroom}
	ways := bindWays(c.cfg.ZeroCopy, c.mode == ModeNative, l.descs() > 1)
	first := -1
	for id := range n {
		r, err := openRings(c.mem, id == 0)
		if err != nil {
			return err
		}
		r.tune(&c.cfg)
		q := newQueue(c, id, r, c.mem)
		c.queues = append(c.queues, q)
		q.refill()
		if err := r.bind(c.link.index, id, ways, first); err != nil {
			return err
		}
		if id == 0 {
			first = r.fd
		} else {
			r.needWakeup, r.frag, r.zeroCopy = c.queues[0].rings.needWakeup, c.queues[0].rings.frag, c.queues[0].rings.zeroCopy
		}
	}
	return nil
}

func (c *Conn) closeQueues() {
	for _, q := range c.queues {
		q.rings.close()
	}
	c.queues = nil
	if c.mem != nil {
		c.mem.close()
	}
}

// queuesOf is the number of queues on which packets can arrive.
func queuesOf(h *netlink.Handle, l *linkState) int {
	if n := channels(l.name); n > 0 {
		return n
	}
	if link, err := h.LinkByIndex(l.index); err == nil {
		return max(link.Attrs().NumRxQueues, 1)
	}
	return 1
}

// queueFor is the queue by which a packet leaves: one for each source port, so
// that packets of a queue pair keep their order.
func (c *Conn) queueFor(t *transport.Tx) *queue {
	if t.Lease != 0 {
		if q, _ := c.frame(t.Lease); q != nil {
			return q
		}
	}
	return c.queues[c.Lane(t.SrcPort)]
}

// LocalAddr returns the address without zone.
func (c *Conn) LocalAddr() netip.Addr { return c.addr }

// Caps tells what frames are like: headers are seen and written whole, and there
// are no trains to send.
func (c *Conn) Caps() transport.Caps {
	mtu := int(c.link.most)
	return transport.Caps{
		HeadersVisible: true, KnownID: true, FullIPControl: true, ECN: true, Lends: true, MTU: mtu, RxBuf: mtu,
	}
}

// SourcePort returns any wanted port of the dynamic range, and maps others there:
// the kernel gives none of them away to sockets that send to port 4791.
func (c *Conn) SourcePort(want uint16) uint16 { return want | 0xC000 }

// ReadBatch fills slots with what the rings have, and now and then with what came
// by the kernel's socket.
func (c *Conn) ReadBatch(b []transport.Rx, wait bool) (int, error) { return c.all.ReadBatch(b, wait) }

// WaitRead waits for a packet without taking it.
func (c *Conn) WaitRead() error { return c.all.WaitRead() }

// Release takes lent memory back.
func (c *Conn) Release(b []transport.Rx) {
	c.life.RLock()
	defer c.life.RUnlock()
	c.giveBack(b)
}

// WriteBatch sends b in order. Packets for one source port leave by one queue.
func (c *Conn) WriteBatch(b []transport.Tx) (int, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	for done := 0; ; {
		if err := c.closedError(); err != nil {
			return done, err
		}
		if done == len(b) {
			return done, nil
		}
		n, err := c.queueFor(&b[done]).write(b[done:])
		if done += n; err != nil {
			return done, err
		}
	}
}

// Stats returns the counters. RxOverflow is the kernel's, for rings that were full
// or had no memory to put a packet in.
func (c *Conn) Stats() (s transport.Stats) {
	c.life.RLock()
	defer c.life.RUnlock()
	if last := c.stats.Load(); last != nil {
		return *last
	}
	s = c.all.received()
	for _, q := range c.queues {
		n := &q.counts
		s.TxPackets += n.txPackets.Load()
		s.TxBytes += n.txBytes.Load()
		s.TxFull += n.txFull.Load()
		s.TxUnreachable += n.txUnreachable.Load()
	}
	return s
}

// Info tells what the system granted.
func (c *Conn) Info() Info {
	c.life.RLock()
	defer c.life.RUnlock()
	i := Info{Interface: c.link.name, Mode: c.mode, Queues: len(c.queues), Spin: c.cfg.Spin, ChunkSize: c.mem.chunk}
	for _, q := range c.queues {
		i.ZeroCopy, i.MultiBuf = q.rings.zeroCopy, q.rings.frag
		q.txMu.Lock()
		i.Resolving += len(q.waiting)
		q.txMu.Unlock()
		i.KernelRx += q.counts.kernelRx.Load()
		i.KernelTx += q.counts.kernelTx.Load()
		i.Unresolved += q.counts.unresolved.Load()
		i.RxBad += q.counts.rxBad.Load()
	}
	return i
}

// Accounting says where the frames are; it is all zero after Close.
func (c *Conn) Accounting() (a Accounting) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed.Load() {
		return a
	}
	for _, q := range c.queues {
		q.account(&a)
	}
	c.kernel.rxMu.Lock()
	a.RxLinear = int(c.linear.lent.Load()) - len(c.kernel.bufs)
	c.kernel.rxMu.Unlock()
	return a
}

// tell reports an event.
func (c *Conn) tell(k EventKind) {
	e := Event{Kind: k, Interface: c.link.name, MTU: int(c.link.mtu.Load())}
	c.cfg.Logger.Warn("the link of a NIC has changed", "address", c.addr, "link", e.Interface, "event", e.Kind, "mtu", e.MTU)
	if c.cfg.Notify != nil {
		c.cfg.Notify(e)
	}
}

// fail ends the Conn for good: its link is gone.
func (c *Conn) fail(err *LinkError) {
	if c.dead.CompareAndSwap(nil, err) {
		c.ring()
		c.tell(LinkGone)
	}
}

// Close takes the program off the link, frees the address and wakes readers. Lent
// memory stays mapped until it is given back.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	last := c.lastStats()
	c.ring()
	c.watch.stop()
	c.life.Lock()
	defer c.life.Unlock()
	c.stats.Store(&last)
	c.teardown()
	return nil
}

func (c *Conn) lastStats() transport.Stats { return c.Stats() }

// teardown frees what there is, of a Conn that may be half open.
func (c *Conn) teardown() {
	if c.steer != nil {
		c.steer.close()
	}
	if c.watch != nil && c.watch.c == nil {
		c.watch.stop() // it was never started
	}
	for _, q := range c.queues {
		q.rings.close()
	}
	if c.mem != nil {
		c.mem.close()
	}
	c.kernel.close()
	if c.bell >= 0 {
		_ = unix.Close(c.bell)
		c.bell = -1
	}
}
