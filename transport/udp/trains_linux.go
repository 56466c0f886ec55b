package udp

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

const (
	// UDP_MAX_SEGMENTS of linux/udp.h: 128 since 6.9, 64 before.
	manySegments = 128
	fewSegments  = 64
	// Bytes of payload in the largest IP packet.
	trainBytes4 = 65535 - 20 - 8
	trainBytes6 = 65535 - 40 - 8
)

// probeTrains finds out whether the kernel sends trains, and of how many
// packets, on a socket of its own that talks to itself.
func (c *Conn) probeTrains(addr netip.Addr) {
	s, err := openSocket(netip.AddrPortFrom(addr, 0), func(fd int) error {
		// Knowing the option and refusing the value tells that from not knowing.
		return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1)
	})
	if err != nil {
		return
	}
	defer s.pc.Close()
	c.limit = transport.Trains{MaxSegments: fewSegments, MaxBytes: trainBytes4}
	if addr.Is6() {
		c.limit.MaxBytes = trainBytes6
	}
	to := s.pc.LocalAddr()
	_ = s.pc.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := s.pc.WriteTo(make([]byte, manySegments), to); err == nil {
		c.limit.MaxSegments = manySegments
	} else if _, err := s.pc.WriteTo(make([]byte, 2), to); err != nil {
		return
	}
	c.gso.Store(true)
}

// trainError decides what the kernel meant by refusing a train: a segment larger
// than the path takes, or trains at all.
func (c *Conn) trainError(t *transport.Tx) error {
	if mtu := c.pathMTU(t.Dst); mtu > 0 && c.overhead()+t.Seg > mtu {
		return &transport.MTUError{Dst: t.Dst, Bytes: c.overhead() + t.Seg, MTU: mtu}
	}
	c.gso.Store(false)
	return transport.ErrTrainsOff
}

func (c *Conn) sizeError(t *transport.Tx) error {
	return &transport.MTUError{
		Dst: t.Dst, Bytes: c.overhead() + len(t.Packet(0)), MTU: c.pathMTU(t.Dst),
	}
}

// overhead is the bytes of IP and UDP header.
func (c *Conn) overhead() int {
	if c.addr.Is6() {
		return 48
	}
	return 28
}

// pathMTU asks the kernel for the MTU towards dst, 0 when it does not know. Only
// a connected socket can ask; this one sends nothing.
func (c *Conn) pathMTU(dst netip.Addr) int {
	family, level, name := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: transport.Port, Addr: dst4(dst)}
	if c.addr.Is6() {
		family, level, name = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
		to = &unix.SockaddrInet6{Port: transport.Port, Addr: dst.As16(), ZoneId: c.scope}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, to) != nil {
		return 0
	}
	mtu, err := unix.GetsockoptInt(fd, level, name)
	if err != nil {
		return 0
	}
	return mtu
}

func dst4(a netip.Addr) (b [4]byte) {
	if a.Is4() {
		b = a.As4()
	}
	return b
}
