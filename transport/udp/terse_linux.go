package udp

import (
	"net"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// terse is whether a socket is told to say little of what it receives: neither
// the traffic class nor how large the packets of a train are, so that trains come cut.
// A small packet that comes alone then costs a third less to receive. Who
// receives has mu, since a switch between two calls of others would change what theirs
// mean; nobody sleeps with it.
type terse struct {
	mu     sync.Mutex
	reader *reader // guarded by mu, as all below
	received

	on    bool
	off   bool // for good: the system does not let it be switched
	run   int  // packets since the switch, when on; those that suit since one did not, when off
	full  int  // what the options are set to
	errno error
	empty bool
	peek  [1]byte
	apply func(fd uintptr) // sets the options
	probe func(fd uintptr) // finds out whether nothing waits
}

func (t *terse) init(v6, gro bool) {
	t.reader = newReader()
	told := option{level: unix.IPPROTO_IP, name: unix.IP_RECVTOS}
	if v6 {
		told = option{level: unix.IPPROTO_IPV6, name: unix.IPV6_RECVTCLASS}
	}
	t.apply = func(fd uintptr) {
		t.errno = unix.SetsockoptInt(int(fd), told.level, told.name, t.full)
		if t.errno == nil && gro {
			t.errno = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, t.full)
		}
	}
	t.probe = func(fd uintptr) {
		_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&t.peek)), 1,
			unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
		t.empty = errno == unix.EAGAIN
	}
}

const (
	// terseAfter is how many packets must have come one by one, small and without
	// the mark of a congested path, before the socket says little, and terseFor for how
	// many it does, so that marks go unseen only for so long.
	terseAfter = 64
	terseFor   = 1024
	// terseBytes is the largest packet that counts as small. A larger one is data,
	// which comes in trains.
	terseBytes = 1024
	// terseBatch is how many packets one call may find before that is no longer one
	// by one.
	terseBatch = 4
)

// read receives once, in the way that suits. took says that something came, though it
// may be of no use.
func (s *shard) read(b []transport.Rx) (n int, took bool, err error) {
	t := &s.terse
	t.mu.Lock() // which also keeps the socket open
	defer t.mu.Unlock()
	if t.on && (!b[0].SkipTOS || t.run >= terseFor) {
		s.verbose()
	}
	r := t.reader
	defer r.forget()
	most := rxBatch
	if t.on {
		most = terseBatch
	}
	if err := r.prepare(b, most); err != nil {
		return 0, false, err
	}
	fd := s.sock.fd
	switch {
	case fd < 0:
		return 0, false, net.ErrClosed
	case t.on:
		r.receiveFew(uintptr(fd))
	default:
		r.receive(uintptr(fd))
	}
	if r.got == 0 {
		return 0, false, r.failure()
	}
	n, got := s.accept(r, b)
	t.received.add(&got)
	s.judge(b[:n])
	return n, true, nil
}

// judge decides after packets have come what the socket is to tell of the next.
func (s *shard) judge(b []transport.Rx) {
	t := &s.terse
	switch {
	case len(b) == 0:
	case t.on:
		t.run += len(b)
		if len(b) == terseBatch || large(b) {
			s.verbose()
		}
	case len(b) > 1 || large(b) || b[0].TOS&ecnMask == ecnMask:
		t.run = 0
	default:
		t.run++
		if t.run >= terseAfter && b[0].SkipTOS && !t.off {
			s.quieten()
		}
	}
}

// ecnMask are the bits of the traffic class that a congested path sets.
const ecnMask = 3

func large(b []transport.Rx) bool {
	for i := range b {
		if len(b[i].Data) > terseBytes {
			return true
		}
	}
	return false
}

// quieten has the socket say little. A train that it has taken whole would lose its
// form: then, and when it cannot be known, all stays as it was.
func (s *shard) quieten() {
	t := &s.terse
	t.run = 0
	if !s.tell(0) {
		t.off = true
		s.tell(1)
		return
	}
	t.empty = false
	if s.sock.control(t.probe) == nil && t.empty {
		t.on = true
		return
	}
	s.tell(1)
}

// verbose has the socket tell everything again, as it did at the start.
func (s *shard) verbose() {
	s.terse.on, s.terse.run = false, 0
	s.tell(1)
}

// tell switches what the socket tells.
func (s *shard) tell(full int) (ok bool) {
	t := &s.terse
	t.full = full
	return s.sock.control(t.apply) == nil && t.errno == nil
}

// receiveFew asks for packets one by one, with nothing but their senders.
func (r *reader) receiveFew(fd uintptr) {
	r.got = 0
	for tries := 0; r.got < r.want && tries < rxErrorTries; tries++ {
		m, v := &r.msgs[r.got], &r.iovs[r.got]
		m.hdr.Namelen, m.hdr.Flags = unix.SizeofSockaddrInet6, 0
		m.hdr.SetControllen(0)
		var n uintptr
		n, _, r.errno = unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(v.Base)), uintptr(v.Len),
			unix.MSG_DONTWAIT|unix.MSG_TRUNC, uintptr(unsafe.Pointer(m.hdr.Name)), uintptr(unsafe.Pointer(&m.hdr.Namelen)))
		switch r.errno {
		case 0:
			m.n = uint32(n)
			if n > uintptr(v.Len) {
				m.hdr.Flags = unix.MSG_TRUNC
			}
			r.got++
		case unix.EINTR, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH: // as in receive
		default:
			return
		}
	}
	r.errno = unix.EAGAIN
}
