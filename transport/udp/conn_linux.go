package udp

import (
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// Conn owns one local address.
type Conn struct {
	addr    netip.Addr // set once, as all up to the pools
	scope   uint32     // interface index for link-local IPv6 destinations
	iface   string
	mtu     int
	recv    []*shard
	all     *waiter       // for all shards; nil when there is one
	lanes   []*descriptor // send only, by index of ports
	ports   ports
	gro     bool
	rxHolds int
	limit   transport.Trains // what the kernel takes, while gso holds

	gso     atomic.Bool
	closed  atomic.Bool
	turn    atomic.Uint32 // the shard that ReadBatch looks at first
	senders pool[sender]
	counts  counts
}

var _ transport.Sharded = (*Conn)(nil)

// counts are updated once a batch.
type counts struct {
	txPackets, txBytes, txTrains atomic.Uint64
	txFull, txUnreachable        atomic.Uint64
}

// Open takes UDP port 4791 of addr, an address of this host; IPv6 link-local
// ones need their zone. The error is a *transport.OpenError, with
// transport.ErrInUse when somebody has the port already, or a
// *transport.ConfigError.
func Open(addr netip.Addr, cfg Config) (*Conn, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	addr = addr.Unmap()
	if err := checkAddr(addr); err != nil {
		return nil, err
	}
	c := &Conn{addr: addr.WithZone(""), mtu: fallbackMTU}
	if i := findInterface(addr); i != nil {
		c.iface, c.mtu = i.Name, min(i.MTU, 65535)
		if addr.IsLinkLocalUnicast() {
			c.scope = uint32(i.Index)
		}
	}
	c.senders.make = c.newSender
	if err := c.openSockets(addr, cfg); err != nil {
		c.closeSockets()
		return nil, openError(addr, err)
	}
	c.rxHolds = c.recv[0].sock.getInt(unix.SOL_SOCKET, unix.SO_RCVBUF)
	if cfg.Trains == TrainsAuto {
		c.probeTrains(addr)
	}
	return c, nil
}

func (c *Conn) openSockets(addr netip.Addr, cfg Config) error {
	v6 := addr.Is6()
	if err := c.openShards(addr, cfg); err != nil {
		return err
	}
	setup := func(fd int) error {
		if err := setOpts(fd, append(sendOpts(v6), usual(v6))); err != nil {
			return err
		}
		if err := dropAll(fd); err != nil {
			return err
		}
		return setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	}
	for lane := range cfg.SourcePorts {
		err := openPort(lane, cfg.SourcePorts, func(port uint16) error {
			s, err := openSocket(netip.AddrPortFrom(addr, port), setup)
			if err == nil {
				c.lanes, c.ports = append(c.lanes, s), append(c.ports, port)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// LocalAddr returns the address without zone.
func (c *Conn) LocalAddr() netip.Addr { return c.addr }

// Caps tells what the sockets do now.
func (c *Conn) Caps() transport.Caps {
	caps := transport.Caps{KnownID: true, ECN: true, MTU: c.mtu, RxBuf: c.mtu, RxHolds: c.rxHolds}
	if c.gro {
		caps.RxBuf = 65535
	}
	if c.gso.Load() {
		caps.Trains = c.limit
	}
	return caps
}

// SourcePort maps a wanted port to one of the Conn's.
func (c *Conn) SourcePort(want uint16) uint16 { return c.ports[c.ports.lane(want)] }

// Control calls f with the descriptor of the socket that receives, the first if
// there are several, which stays open meanwhile, for who waits for several Conns:
// with one shard, readable means that ReadBatch has something. A call that is to end at Close must see to that itself, since Close
// waits for it. After Close it returns net.ErrClosed.
func (c *Conn) Control(f func(fd uintptr)) error { return c.recv[0].sock.control(f) }

// Info tells what the system granted.
func (c *Conn) Info() Info {
	return Info{
		RecvBuffer:  c.recv[0].sock.getInt(unix.SOL_SOCKET, unix.SO_RCVBUF),
		SendBuffer:  c.lanes[0].getInt(unix.SOL_SOCKET, unix.SO_SNDBUF),
		SourcePorts: append([]uint16(nil), c.ports...),
		Shards:      len(c.recv),
		Interface:   c.iface,
		GSO:         c.gso.Load(),
		GRO:         c.gro,
	}
}

// Stats returns the counters; RxOverflow is the kernel's for the sockets.
func (c *Conn) Stats() transport.Stats {
	n := &c.counts
	s := transport.Stats{
		TxPackets: n.txPackets.Load(), TxBytes: n.txBytes.Load(), TxTrains: n.txTrains.Load(),
		TxFull: n.txFull.Load(), TxUnreachable: n.txUnreachable.Load(),
	}
	for _, part := range c.recv {
		p := part.Stats()
		s.RxPackets += p.RxPackets
		s.RxBytes += p.RxBytes
		s.RxTrains += p.RxTrains
		s.RxOverflow += p.RxOverflow
		s.RxTruncated += p.RxTruncated
	}
	return s
}

// Close frees the address and wakes readers.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	c.closeSockets()
	return nil
}

func (c *Conn) closeSockets() {
	if c.all != nil {
		c.all.close()
	}
	for _, s := range c.recv {
		s.close()
	}
	for _, l := range c.lanes {
		l.close()
	}
}
