package udp

import (
	"encoding/binary"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

const (
	txBatch = 64 // messages a call
	// txControl has room for segment size and traffic class, 24 bytes each.
	txControl = 64
	// fullWait is how long a full send buffer is waited for, in milliseconds,
	// before what remains of the batch counts as lost.
	fullWait = 5
)

// sender is the arrays of one send.
type sender struct {
	conn *Conn
	msgs [txBatch]mmsghdr
	iovs [txBatch]unix.Iovec
	sa4  [txBatch]unix.RawSockaddrInet4
	sa6  [txBatch]unix.RawSockaddrInet6
	ctl  [txBatch][txControl]byte

	used     int // messages that refer to packets
	from, to int // those not sent yet
	sent     int // by the last call
	errno    unix.Errno
	try      func(fd uintptr) // one sendmmsg of them
	room     func(fd uintptr) // wait until the buffer has room
	pollfd   [1]unix.PollFd
	ready    bool
}

func (c *Conn) newSender() *sender {
	s := &sender{conn: c}
	v6 := c.addr.Is6()
	for i := range s.msgs {
		h := &s.msgs[i].hdr
		h.Iov = &s.iovs[i]
		h.SetIovlen(1)
		if v6 {
			s.sa6[i] = unix.RawSockaddrInet6{Family: unix.AF_INET6}
			portBE(&s.sa6[i].Port, transport.Port)
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.sa6[i])), unix.SizeofSockaddrInet6
		} else {
			s.sa4[i] = unix.RawSockaddrInet4{Family: unix.AF_INET}
			portBE(&s.sa4[i].Port, transport.Port)
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.sa4[i])), unix.SizeofSockaddrInet4
		}
	}
	s.try = func(fd uintptr) { s.sent, s.errno = sendmmsg(fd, s.msgs[s.from:s.to]) }
	s.room = func(fd uintptr) {
		s.pollfd[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT}
		n, err := unix.Poll(s.pollfd[:], fullWait)
		s.ready = n > 0 || err == unix.EINTR
	}
	return s
}

// WriteBatch sends b in order, in one system call for each run of packets with
// the same source port, at most 64 at a time.
func (c *Conn) WriteBatch(b []transport.Tx) (int, error) {
	s := c.senders.get()
	defer c.putSender(s)
	done := 0
	for done < len(b) {
		lane := c.ports.lane(b[done].SrcPort)
		n, bad := s.prepare(b[done:], lane)
		sent, err := s.send(c.lanes[lane], b[done:done+n])
		done += sent
		if err != nil {
			return done, err
		}
		if bad != nil {
			return done, bad
		}
	}
	if c.closed.Load() {
		return done, net.ErrClosed
	}
	return done, nil
}

// putSender keeps s for the next call, but not the caller's packets.
func (c *Conn) putSender(s *sender) {
	for i := range s.used {
		s.iovs[i].Base = nil
	}
	s.used = 0
	c.senders.put(s)
}

// prepare fills the arrays with the first packets of b that leave from one lane.
// It stops at one that cannot be sent, and says why.
func (s *sender) prepare(b []transport.Tx, lane int) (n int, err error) {
	c := s.conn
	trains := transport.Trains{}
	if c.gso.Load() {
		trains = c.limit
	}
	for n < min(len(b), txBatch) {
		t := &b[n]
		if c.ports.lane(t.SrcPort) != lane {
			break
		}
		if err := transport.CheckTx(t, c.addr, trains); err != nil {
			return n, err
		}
		s.fill(n, t)
		n++
		s.used = max(s.used, n)
	}
	return n, nil
}

// fill sets up message i.
func (s *sender) fill(i int, t *transport.Tx) {
	v6 := t.Dst.Is6()
	if v6 {
		sa := &s.sa6[i]
		sa.Addr, sa.Scope_id = t.Dst.As16(), 0
		if t.Dst.IsLinkLocalUnicast() || t.Dst.IsLinkLocalMulticast() {
			sa.Scope_id = s.conn.scope
		}
	} else {
		s.sa4[i].Addr = t.Dst.As4()
	}
	s.iovs[i].Base = &t.Data[0]
	s.iovs[i].SetLen(len(t.Data))
	ctl := s.ctl[i][:0]
	if t.IsTrain() {
		ctl = appendControl(ctl, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2, uint32(t.Seg))
	}
	if t.TOS != usualTOS {
		if v6 {
			ctl = appendControl(ctl, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 4, uint32(t.TOS))
		} else {
			ctl = appendControl(ctl, unix.IPPROTO_IP, unix.IP_TOS, 4, uint32(t.TOS))
		}
	}
	h := &s.msgs[i].hdr
	h.Control = nil
	if len(ctl) > 0 {
		h.Control = &ctl[0]
	}
	h.SetControllen(len(ctl))
}

// appendControl adds a control message with a value of 2 or 4 bytes.
func appendControl(b []byte, level, kind int32, size int, v uint32) []byte {
	at := len(b)
	b = b[:at+unix.CmsgSpace(size)]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[at]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	data := b[at+unix.CmsgLen(0):]
	if size == 2 {
		binary.NativeEndian.PutUint16(data, uint16(v))
	} else {
		binary.NativeEndian.PutUint32(data, v)
	}
	return b
}

// send sends the prepared messages, b being where they came from.
func (s *sender) send(l *descriptor, b []transport.Tx) (int, error) {
	c := s.conn
	s.from, s.to = 0, len(b)
	tries := 0
	for s.from < s.to {
		if l.control(s.try) != nil {
			return s.from, net.ErrClosed
		}
		if s.errno == 0 {
			c.counts.addSent(b[s.from : s.from+s.sent])
			s.from += s.sent
			continue
		}
		tries++
		switch t := &b[s.from]; fault(s.errno, t.IsTrain()) {
		case faultBusy:
			if l.control(s.room) != nil {
				return s.from, net.ErrClosed
			}
			if !s.ready || tries > txErrorTries {
				c.counts.txFull.Add(packets(b[s.from:]))
				return s.to, nil
			}
		case faultFull:
			c.counts.txFull.Add(uint64(t.Packets()))
			s.from++
		case faultEarlier:
			if tries > txErrorTries {
				c.counts.txUnreachable.Add(uint64(t.Packets()))
				s.from++
			}
		case faultUnreachable:
			c.counts.txUnreachable.Add(uint64(t.Packets()))
			s.from++
		case faultSize:
			return s.from, c.sizeError(t)
		case faultTrain:
			return s.from, c.trainError(t, s.errno)
		default:
			return s.from, refused(c.addr, t, s.errno)
		}
	}
	return s.to, nil
}

func packets(b []transport.Tx) (n uint64) {
	for i := range b {
		n += uint64(b[i].Packets())
	}
	return n
}

func (n *counts) addSent(b []transport.Tx) {
	var packets, bytes, trains uint64
	for i := range b {
		p := b[i].Packets()
		packets += uint64(p)
		bytes += uint64(len(b[i].Data))
		if p > 1 {
			trains++
		}
	}
	n.txPackets.Add(packets)
	n.txBytes.Add(bytes)
	if trains > 0 {
		n.txTrains.Add(trains)
	}
}
