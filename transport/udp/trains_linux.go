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
	s, err := listen(netip.AddrPortFrom(addr, 0), func(fd int) error {
		// An older kernel does not know the option.
		return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1)
	})
	if err != nil {
		return
	}
	defer s.Close()
	c.limit = transport.Trains{MaxSegments: fewSegments, MaxBytes: trainBytes4}
	if addr.Is6() {
		c.limit.MaxBytes = trainBytes6
	}
	to := s.LocalAddr()
	_ = s.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := s.WriteTo(make([]byte, manySegments), to); err == nil {
		c.limit.MaxSegments = manySegments
	} else if _, err := s.WriteTo(make([]byte, 2), to); err != nil {
		return
	}
	c.gso.Store(true)
}

// trainError decides what the kernel meant by refusing a train: the destination,
// a segment larger than the path takes, or trains at all.
func (c *Conn) trainError(t *transport.Tx, errno unix.Errno) error {
	switch mtu, err := c.pathMTU(t.Dst); {
	case err != nil:
		return refused(c.addr, t, errno)
	case overhead(c.addr)+t.Seg > mtu:
		return &transport.MTUError{Dst: t.Dst, Bytes: overhead(c.addr) + t.Seg, MTU: mtu}
	}
	c.gso.Store(false)
	return transport.ErrTrainsOff
}

func (c *Conn) sizeError(t *transport.Tx) error {
	mtu, _ := c.pathMTU(t.Dst) // 0 when it cannot be asked
	return &transport.MTUError{Dst: t.Dst, Bytes: overhead(c.addr) + len(t.Packet(0)), MTU: mtu}
}

// pathMTU asks the kernel for the MTU of the path to dst, or for why there is
// none. Only a connected socket can ask; this one sends nothing.
func (c *Conn) pathMTU(dst netip.Addr) (int, error) {
	family, level, name := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	if c.addr.Is6() {
		family, level, name = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Bind(fd, c.sockaddr(c.addr, 0)); err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, c.sockaddr(dst, transport.Port)); err != nil {
		return 0, err
	}
	return unix.GetsockoptInt(fd, level, name)
}

// sockaddr is for an address of the Conn's family.
func (c *Conn) sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	sa := &unix.SockaddrInet6{Port: port, Addr: a.As16()}
	if a.IsLinkLocalUnicast() {
		sa.ZoneId = c.scope
	}
	return sa
}
