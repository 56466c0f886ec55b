package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// shard is one of the sockets that receive.
type shard struct {
	addr  netip.Addr  // set once, as all but terse
	sock  *descriptor // in no poller, see waiter
	wait  *waiter
	terse terse
}

var _ transport.Reader = (*shard)(nil)

// openShards binds the sockets that receive. The first does not ask for
// SO_REUSEPORT when it is bound, so that a second owner of the address fails
// clearly; only then it lets the others join.
func (c *Conn) openShards(addr netip.Addr, cfg Config) error {
	setup := func(fd int) error {
		if err := setOpts(fd, recvOpts(addr.Is6())); err != nil {
			return err
		}
		c.gro = cfg.Trains == TrainsAuto && unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		return setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.RecvBuffer)
	}
	if err := c.openShard(addr, setup); err != nil {
		return err
	}
	if cfg.Shards == 1 || c.join(addr, cfg.Shards, setup) == nil {
		return c.waitForAll()
	}
	for _, s := range c.recv[1:] { // not here
		s.close()
	}
	c.recv = c.recv[:1]
	return c.recv[0].sock.set(reusePort, 0)
}

// reusePort lets sockets of one user share an address.
var reusePort = option{unix.SOL_SOCKET, unix.SO_REUSEPORT, 1}

// join opens the shards after the first and has the kernel choose between them.
// Until it does, packets of queue pairs, of which there are none yet, could come
// by any.
func (c *Conn) join(addr netip.Addr, shards int, setup func(fd int) error) error {
	if err := c.recv[0].sock.set(reusePort, 1); err != nil {
		return err
	}
	for range shards - 1 {
		err := c.openShard(addr, func(fd int) error {
			if err := setOpts(fd, []option{reusePort}); err != nil {
				return err
			}
			return setup(fd)
		})
		if err != nil {
			return err
		}
	}
	return c.recv[0].sock.steer(shards)
}

func (c *Conn) openShard(addr netip.Addr, setup func(fd int) error) error {
	sock, err := openSocket(netip.AddrPortFrom(addr, transport.Port), setup)
	if err != nil {
		return err
	}
	w, err := newWaiter(sock)
	if err != nil {
		sock.close()
		return err
	}
	s := &shard{addr: c.addr, sock: sock, wait: w}
	s.terse.init(c.addr.Is6(), c.gro)
	c.recv = append(c.recv, s)
	return nil
}

// waitForAll makes what readers of the Conn as a whole wait by.
func (c *Conn) waitForAll() (err error) {
	if len(c.recv) == 1 {
		return nil
	}
	socks := make([]*descriptor, len(c.recv))
	for i, s := range c.recv {
		socks[i] = s.sock
	}
	c.all, err = newWaiter(socks...)
	return err
}

// qpnLowByte is where the last byte of the destination QPN lies in a packet; of a
// train it is the first packet's, and all go to one queue pair.
const qpnLowByte = 7

// steer has the kernel choose the socket of the group, in the order in which they
// joined, by the low bits of the destination QPN. What is too short for one goes
// to the first.
func (d *descriptor) steer(shards int) (err error) {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: qpnLowByte},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: uint32(shards - 1)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	closed := d.control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	})
	if closed != nil {
		return closed
	}
	return err
}

// WaitRead waits for a datagram without taking it.
func (s *shard) WaitRead() error { return s.wait.wait() }

// Release does nothing: slots are the caller's own.
func (s *shard) Release([]transport.Rx) {}

// Stats returns the counters; RxOverflow is the kernel's for the socket.
func (s *shard) Stats() transport.Stats {
	s.terse.mu.Lock()
	n := s.terse.received
	s.terse.mu.Unlock()
	return transport.Stats{
		RxPackets: n.packets, RxBytes: n.bytes, RxTrains: n.trains, RxTruncated: n.truncated, RxOverflow: uint64(s.drops()),
	}
}

// drops reads the socket's drop counter. Asking beats SO_RXQ_OVFL, which tells
// only with the next packet that gets through.
func (s *shard) drops() uint32 {
	const skMeminfoDrops = 8 // SK_MEMINFO_DROPS of linux/sock_diag.h
	var info [skMeminfoDrops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_ = s.sock.control(func(fd uintptr) {
		_, _, _ = unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return info[skMeminfoDrops]
}

func (s *shard) close() {
	s.wait.close()
	s.terse.mu.Lock()
	defer s.terse.mu.Unlock()
	s.sock.close()
}

// Shards returns what the sockets receive, socket by socket.
func (c *Conn) Shards() []transport.Reader {
	parts := make([]transport.Reader, len(c.recv))
	for i, s := range c.recv {
		parts[i] = s
	}
	return parts
}

// ReadBatch receives what has arrived at one of the shards, each in its turn.
func (c *Conn) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	if c.all == nil {
		return c.recv[0].ReadBatch(b, wait)
	}
	for {
		first := c.turn.Add(1)
		for i := range uint32(len(c.recv)) {
			n, err := c.recv[(first+i)%uint32(len(c.recv))].ReadBatch(b, false)
			if n > 0 || err != nil {
				return n, err
			}
		}
		if !wait || len(b) == 0 {
			return 0, nil
		}
		if err := c.all.wait(); err != nil {
			return 0, err
		}
	}
}

// WaitRead waits for a datagram without taking it.
func (c *Conn) WaitRead() error {
	if c.all == nil {
		return c.recv[0].WaitRead()
	}
	return c.all.wait()
}

// Release does nothing: slots are the caller's own.
func (c *Conn) Release([]transport.Rx) {}
