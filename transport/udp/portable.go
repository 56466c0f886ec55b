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
	closed  atomic.Bool
	stop    chan struct{}
	next    datagram // taken from arrived by WaitRead
	hasNext bool
	mu      sync.Mutex // guards next, hasNext

	rxPackets, rxBytes, rxTruncated, txPackets, txBytes, txFull atomic.Uint64
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
	go c.read()
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
	for range cfg.SourcePorts {
		err := openPort(func(port uint16) error {
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

// read moves datagrams from the socket to the queue until Close.
func (c *portable) read() {
	defer close(c.done)
	for {
		var buf []byte
		select {
		case buf = <-c.spare:
		default:
			buf = make([]byte, c.mtu)
		}
		n, from, err := c.recv.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // an ICMP error, or a datagram that was cut off
		}
		select {
		case c.arrived <- datagram{buf[:n], from}:
		case <-c.stop:
			return
		}
	}
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
	return Info{SourcePorts: append([]uint16(nil), c.ports...), Interface: c.iface}
}

// Stats returns what was counted here.
func (c *portable) Stats() transport.Stats {
	return transport.Stats{
		RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(), RxTruncated: c.rxTruncated.Load(),
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(), TxFull: c.txFull.Load(),
	}
}

// ReadBatch takes what the goroutine has read.
func (c *portable) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	n := 0
	for n < len(b) {
		if cap(b[n].Buf) == 0 {
			return n, transport.ErrNoBuffer
		}
		d, ok := c.take()
		if !ok {
			if n > 0 || !wait {
				break
			}
			if err := c.WaitRead(); err != nil {
				return 0, err
			}
			continue
		}
		if c.deliver(&b[n], d) {
			n++
		}
	}
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, nil
}

func (c *portable) take() (datagram, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasNext {
		c.hasNext = false
		return c.next, true
	}
	select {
	case d := <-c.arrived:
		return d, true
	default:
		return datagram{}, false
	}
}

func (c *portable) deliver(s *transport.Rx, d datagram) bool {
	defer func() {
		select {
		case c.spare <- d.buf[:cap(d.buf)]:
		default:
		}
	}()
	if len(d.buf) > cap(s.Buf) {
		c.rxTruncated.Add(1)
		return false
	}
	buf := s.Buf
	*s = transport.Rx{
		Buf: buf, Data: buf[:len(d.buf)],
		Src: d.from.Addr().Unmap().WithZone(""), SrcPort: d.from.Port(), Dst: c.addr,
	}
	copy(s.Data, d.buf)
	c.rxPackets.Add(1)
	c.rxBytes.Add(uint64(len(d.buf)))
	return true
}

// WaitRead waits for the goroutine to read something.
func (c *portable) WaitRead() error {
	for {
		c.mu.Lock()
		ready := c.hasNext
		c.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case d := <-c.arrived:
			c.keep(d)
			return nil
		case <-c.stop:
			return net.ErrClosed
		}
	}
}

// keep puts a datagram that WaitRead took in front of the queue. When another
// waiter did the same, the order of two packets is lost, as on any network.
func (c *portable) keep(d datagram) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasNext {
		select {
		case c.arrived <- d:
		default: // full again: lost, as in a full socket buffer
		}
		return
	}
	c.next, c.hasNext = d, true
}

// Release does nothing: slots are the caller's own.
func (c *portable) Release([]transport.Rx) {}

// WriteBatch sends b a packet a call. A refusal is loss, except for the size.
func (c *portable) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		t := &b[i]
		if err := transport.CheckTx(t, c.addr, transport.Trains{}); err != nil {
			return i, err
		}
		dst := t.Dst
		if c.zone != "" && dst.IsLinkLocalUnicast() {
			dst = dst.WithZone(c.zone)
		}
		_, err := c.lanes[c.ports.lane(t.SrcPort)].WriteToUDPAddrPort(t.Data, netip.AddrPortFrom(dst, transport.Port))
		switch {
		case err == nil:
			c.txPackets.Add(1)
			c.txBytes.Add(uint64(len(t.Data)))
		case errors.Is(err, net.ErrClosed):
			return i, net.ErrClosed
		case isTooBig(err):
			return i, &transport.MTUError{Dst: t.Dst, Bytes: len(t.Data) + 28}
		default:
			c.txFull.Add(1)
		}
	}
	if c.closed.Load() {
		return len(b), net.ErrClosed
	}
	return len(b), nil
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
