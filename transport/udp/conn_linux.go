package udp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// Conn owns one local address.
type Conn struct {
	addr  netip.Addr // set once, as all up to the pools
	scope uint32     // interface index for link-local IPv6 destinations
	iface string
	mtu   int
	recv  *descriptor
	bell  bell
	lanes []*descriptor // send only, by index of ports
	ports ports
	gro   bool
	limit transport.Trains // what the kernel takes, while gso holds

	gso     atomic.Bool
	closed  atomic.Bool
	readers pool[reader]
	senders pool[sender]
	counts  counts
}

var _ transport.Conn = (*Conn)(nil)

// counts are updated once a batch.
type counts struct {
	rxPackets, rxBytes, rxTrains, rxTruncated atomic.Uint64
	txPackets, txBytes, txTrains              atomic.Uint64
	txFull, txUnreachable                     atomic.Uint64
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
	c.readers.make = c.newReader
	c.senders.make = c.newSender
	if err := c.openSockets(addr, cfg); err != nil {
		c.closeSockets()
		return nil, openError(addr, err)
	}
	if cfg.Trains == TrainsAuto {
		c.probeTrains(addr)
	}
	return c, nil
}

func (c *Conn) openSockets(addr netip.Addr, cfg Config) error {
	v6 := addr.Is6()
	if err := c.bell.open(); err != nil {
		return err
	}
	// No SO_REUSEPORT: a second owner of the address must fail.
	recv, err := openSocket(netip.AddrPortFrom(addr, transport.Port), func(fd int) error {
		if err := setOpts(fd, recvOpts(v6)); err != nil {
			return err
		}
		c.gro = cfg.Trains == TrainsAuto && unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		return setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.RecvBuffer)
	})
	if err != nil {
		return err
	}
	c.recv = recv
	setup := func(fd int) error {
		if err := setOpts(fd, sendOpts(v6)); err != nil {
			return err
		}
		if err := dropAll(fd); err != nil {
			return err
		}
		return setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	}
	for range cfg.SourcePorts {
		err := openPort(func(port uint16) error {
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
	caps := transport.Caps{KnownID: true, ECN: true, MTU: c.mtu, RxBuf: c.mtu}
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

// Control calls f with the descriptor of the socket that receives, which stays open
// meanwhile, for who waits for several: readable means that ReadBatch has
// something. A call that is to end at Close must see to that itself, since Close
// waits for it. After Close it returns net.ErrClosed.
func (c *Conn) Control(f func(fd uintptr)) error { return c.recv.control(f) }

// Info tells what the system granted.
func (c *Conn) Info() Info {
	return Info{
		RecvBuffer:  c.recv.getInt(unix.SOL_SOCKET, unix.SO_RCVBUF),
		SendBuffer:  c.lanes[0].getInt(unix.SOL_SOCKET, unix.SO_SNDBUF),
		SourcePorts: append([]uint16(nil), c.ports...),
		Interface:   c.iface,
		GSO:         c.gso.Load(),
		GRO:         c.gro,
	}
}

// Stats returns the counters; RxOverflow is the kernel's for the socket.
func (c *Conn) Stats() transport.Stats {
	n := &c.counts
	return transport.Stats{
		RxPackets: n.rxPackets.Load(), RxBytes: n.rxBytes.Load(), RxTrains: n.rxTrains.Load(),
		RxTruncated: n.rxTruncated.Load(), RxOverflow: uint64(c.drops()),
		TxPackets: n.txPackets.Load(), TxBytes: n.txBytes.Load(), TxTrains: n.txTrains.Load(),
		TxFull: n.txFull.Load(), TxUnreachable: n.txUnreachable.Load(),
	}
}

// drops reads the socket's drop counter. Asking beats SO_RXQ_OVFL, which tells
// only with the next packet that gets through.
func (c *Conn) drops() uint32 {
	const skMeminfoDrops = 8 // SK_MEMINFO_DROPS of linux/sock_diag.h
	var info [skMeminfoDrops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_ = c.recv.control(func(fd uintptr) {
		_, _, _ = unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return info[skMeminfoDrops]
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
	c.bell.ring() // so that readers let go
	if c.recv != nil {
		c.recv.close()
	}
	c.bell.close()
	for _, l := range c.lanes {
		l.close()
	}
}
