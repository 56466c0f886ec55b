package xdp

import (
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
)

// kernel is the way beside the rings: a UDP socket that owns the port and takes
// what the program passed, and a raw one that sends what does not leave through
// our link.
type kernel struct {
	c    *Conn
	conn *udp.Conn
	raw  int

	due   atomic.Bool   // a waiter saw that there is something
	looks atomic.Uint32 // reads since the socket was last looked at

	rxMu  sync.Mutex
	slots []transport.Rx // guarded by rxMu, as number, which tells their buffers
	bufs  []uint32

	txMu sync.Mutex
	buf  []byte // guarded by txMu
}

const (
	kernelSlots  = 16
	kernelBuffer = 4 << 20
	// lookEvery is how many reads of the rings pass between two of the socket, a
	// system call, while nobody waits.
	lookEvery = 32
)

func (k *kernel) open(c *Conn) (err error) {
	k.c, k.raw = c, -1
	k.conn, err = udp.Open(c.opened, udp.Config{Trains: udp.TrainsOff, Shards: 1, SourcePorts: 1, RecvBuffer: kernelBuffer, SendBuffer: udp.MinBuffer})
	if err != nil {
		return err
	}
	family := unix.AF_INET
	if c.addr.Is6() {
		family = unix.AF_INET6
	}
	// IPPROTO_RAW takes whole packets and receives none.
	k.raw, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	k.buf = make([]byte, headroom+1<<16)
	return err
}

// wanted reports whether it is time to look at the socket.
func (k *kernel) wanted() bool {
	if k.due.Load() {
		return true
	}
	if k.looks.Add(1) < lookEvery {
		return false
	}
	k.looks.Store(0)
	return true
}

// read fills slots with what the socket has.
func (k *kernel) read(b []transport.Rx) (int, error) {
	k.rxMu.Lock()
	defer k.rxMu.Unlock()
	for len(k.slots) < kernelSlots {
		buf, number := k.c.linear.get(1 << 16)
		if buf == nil {
			break
		}
		k.slots, k.bufs = append(k.slots, transport.Rx{Buf: buf}), append(k.bufs, number)
	}
	n := min(len(b), len(k.slots))
	if n == 0 {
		return 0, nil
	}
	got, err := k.conn.ReadBatch(k.slots[:n], false)
	k.due.Store(got == n && err == nil)
	for i := range got {
		s := &k.slots[i]
		number := k.numberOf(s)
		s.Buf, s.Lease = nil, leaseLinear|uint64(number)
		b[i] = *s
	}
	k.slots = append(k.slots[:0], k.slots[got:]...)
	k.c.queues[0].counts.kernelRx.Add(uint64(got))
	return got, err
}

// numberOf finds the buffer of a slot, which a read may have swapped.
func (k *kernel) numberOf(s *transport.Rx) uint32 {
	for i, number := range k.bufs {
		if k.c.linear.is(number, s.Buf) {
			k.bufs[i] = k.bufs[len(k.bufs)-1]
			k.bufs = k.bufs[:len(k.bufs)-1]
			return number
		}
	}
	return maxLinear // never given back: it cannot be
}

// send sends one packet on the kernel's way.
func (k *kernel) send(q *queue, t *transport.Tx) (bool, error) {
	k.txMu.Lock()
	defer k.txMu.Unlock()
	s := shape{src: k.c.addr, dst: t.Dst.WithZone(""), hopLimit: uint8(k.c.cfg.HopLimit), checksum: k.c.cfg.Checksum}
	tm := newTemplate(&s)
	copy(k.buf[headroom:], t.Data)
	start := tm.put(k.buf, headroom, len(t.Data), t.ID, k.c.SourcePort(t.SrcPort), t.TOS) + tm.ip
	var to unix.Sockaddr
	if tm.v6 {
		sa := &unix.SockaddrInet6{Addr: s.dst.As16()}
		if s.dst.IsLinkLocalUnicast() {
			sa.ZoneId = uint32(k.c.link.out)
		}
		to = sa
	} else {
		to = &unix.SockaddrInet4{Addr: s.dst.As4()}
	}
	switch err := unix.Sendto(k.raw, k.buf[start:headroom+len(t.Data)], unix.MSG_DONTWAIT, to); err {
	case nil:
		q.counts.kernelTx.Add(1)
		return true, nil
	case unix.EMSGSIZE:
		return false, &transport.MTUError{Dst: t.Dst, Bytes: tm.packetLen(len(t.Data))}
	case unix.EBADF:
		return false, net.ErrClosed
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		q.counts.txFull.Add(1)
	default:
		q.counts.txUnreachable.Add(1)
	}
	return false, nil
}

func (k *kernel) close() {
	if k.conn != nil {
		_ = k.conn.Close()
	}
	if k.raw >= 0 {
		_ = unix.Close(k.raw)
		k.raw = -1
	}
	k.rxMu.Lock()
	defer k.rxMu.Unlock()
	for _, number := range k.bufs {
		k.c.linear.put(number)
	}
	k.slots, k.bufs = nil, nil
}
