package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/transport"
)

// portableQueue bounds what a portable Conn has read but not delivered, in
// packets. What does not fit stays in the socket buffer.
const portableQueue = 256

// portable is a Conn over package net alone. A goroutine reads, because not all
// systems let a socket be tried without waiting.
type portable struct {
	addr  netip.Addr
	zone  string
	iface string
	mtu   int
	recv  *net.UDPConn
	lanes []*net.UDPConn
	ports ports

	arrived chan datagram // read and not delivered
	spare   chan []byte   // storage for the goroutine
	done    chan struct{} // closed when it has ended
	err     error         // why, set before
	closed  atomic.Bool
	stop    chan struct{}
	next    datagram // taken from arrived by WaitRead
	hasNext bool
	mu      sync.Mutex // guards next, hasNext

	rxPackets, rxBytes, rxTruncated, txPackets, txBytes, txFull, txUnreachable atomic.Uint64
}

type datagram struct {
	buf  []byte
	from netip.AddrPort
}

func openPortable(addr netip.Addr, cfg Config) (*portable, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	addr = addr.Unmap()
	if err := checkAddr(addr); err != nil {
		return nil, err
	}
	c := &portable{
		addr: addr.WithZone(""), zone: addr.Zone(), mtu: fallbackMTU,
		arrived: make(chan datagram, portableQueue),
		spare:   make(chan []byte, portableQueue+2),
		done:    make(chan struct{}),
		stop:    make(chan struct{}),
	}
	if i := findInterface(addr); i != nil {
		c.iface, c.mtu = i.Name, min(i.MTU, 65535)
	}
	if err := c.openSockets(addr, cfg); err != nil {
		c.closeSockets()
		return nil, openError(addr, err)
	}
	go c.read(c.recv)
	return c, nil
}

func (c *portable) openSockets(addr netip.Addr, cfg Config) (err error) {
	network := "udp4"
	if addr.Is6() {
		network = "udp6"
	}
	listen := func(port uint16) (*net.UDPConn, error) {
		return net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port)))
	}
	if c.recv, err = listen(transport.Port); err != nil {
		c.recv = nil
		return err
	}
	growBuffer(c.recv.SetReadBuffer, cfg.RecvBuffer)
	for lane := range cfg.SourcePorts {
		err := openPort(lane, cfg.SourcePorts, func(port uint16) error {
			s, err := listen(port)
			if err != nil {
				return err
			}
			c.lanes, c.ports = append(c.lanes, s), append(c.ports, port)
			growBuffer(s.SetWriteBuffer, cfg.SendBuffer)
			return setDontFragment(s, addr.Is6())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// growBuffer asks for less until the system agrees, down to its own default.
func growBuffer(set func(int) error, size int) {
	for size >= MinBuffer && set(size) != nil {
		size /= 2
	}
}

// setDontFragment sets the flag that the ICRC of IPv4 packets covers.
func setDontFragment(s *net.UDPConn, v6 bool) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = dontFragment(fd, v6) }); err != nil {
		return err
	}
	return failed
}

// LocalAddr returns the address without zone.
func (c *portable) LocalAddr() netip.Addr { return c.addr }

// Caps tells that little is known here.
func (c *portable) Caps() transport.Caps {
	return transport.Caps{MTU: c.mtu, RxBuf: c.mtu}
}

// SourcePort maps a wanted port to one of the Conn's.
func (c *portable) SourcePort(want uint16) uint16 { return c.ports[c.ports.lane(want)] }

// Info tells the ports and the interface.
func (c *portable) Info() Info {
	return Info{Shards: 1, SourcePorts: append([]uint16(nil), c.ports...), Interface: c.iface}
}

// Stats returns what was counted here.
func (c *portable) Stats() transport.Stats {
	return transport.Stats{
		RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(), RxTruncated: c.rxTruncated.Load(),
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(), TxFull: c.txFull.Load(),
		TxUnreachable: c.txUnreachable.Load(),
	}
}

// WriteBatch sends b a packet a call.
func (c *portable) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		t := &b[i]
		if err := transport.CheckTx(t, c.addr, transport.Trains{}); err != nil {
			return i, err
		}
		if err := c.write(t); err != nil {
			return i, err
		}
	}
	if c.closed.Load() {
		return len(b), net.ErrClosed
	}
	return len(b), nil
}

// write sends or loses one packet; an error says why it can never be sent.
func (c *portable) write(t *transport.Tx) error {
	dst := t.Dst
	if c.zone != "" && dst.IsLinkLocalUnicast() {
		dst = dst.WithZone(c.zone)
	}
	lane := c.lanes[c.ports.lane(t.SrcPort)]
	for try := 1; ; try++ {
		_, err := lane.WriteToUDPAddrPort(t.Data, netip.AddrPortFrom(dst, transport.Port))
		switch {
		case err == nil:
			c.txPackets.Add(1)
			c.txBytes.Add(uint64(len(t.Data)))
			return nil
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		}
		switch faultOf(err) {
		case faultEarlier:
			if try <= txErrorTries {
				continue
			}
			c.txUnreachable.Add(1)
		case faultUnreachable:
			c.txUnreachable.Add(1)
		case faultBusy, faultFull:
			c.txFull.Add(1)
		case faultSize:
			return &transport.MTUError{Dst: t.Dst, Bytes: overhead(c.addr) + len(t.Data)}
		default:
			return refused(c.addr, t, err)
		}
		return nil
	}
}

// Close frees the address and ends the goroutine.
func (c *portable) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	close(c.stop)
	c.closeSockets()
	<-c.done
	return nil
}

func (c *portable) closeSockets() {
	if c.recv != nil {
		_ = c.recv.Close()
	}
	for _, s := range c.lanes {
		_ = s.Close()
	}
}
