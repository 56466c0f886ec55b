package udp

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// lane is a socket that only sends. Its descriptor is kept out of the runtime's
// poller: there, every packet that a receiver takes on this host would wake it
// with the news that the send buffer has room.
type lane struct {
	mu sync.RWMutex // held for reading by who uses fd
	fd int          // -1 when closed
}

// openLane binds a socket and sets it up before that.
func openLane(addr netip.AddrPort, setup func(fd int) error) (*lane, error) {
	s, err := openSocket(addr, setup)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.pc.Close() }()
	l := &lane{fd: -1}
	var dup error
	err = s.raw.Control(func(fd uintptr) { l.fd, dup = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = dup
	}
	return l, err
}

// control calls f with the descriptor, which stays open meanwhile.
func (l *lane) control(f func(fd uintptr)) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(l.fd))
	return nil
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}

// getInt reads an integer option, 0 when that fails.
func (l *lane) getInt(level, name int) int {
	v := 0
	_ = l.control(func(fd uintptr) { v, _ = unix.GetsockoptInt(int(fd), level, name) })
	return v
}
