package udp

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// descriptor is an open file that is kept out of the runtime's poller. A socket in
// there wakes a thread with every packet that comes, though the application may
// be looking at it already, and with every packet that a receiver on this host
// takes of what was sent, since the send buffer has room then.
type descriptor struct {
	mu sync.RWMutex // held for reading by who uses fd
	fd int          // -1 when closed
}

// openSocket binds an unconnected UDP socket, set up before that.
func openSocket(addr netip.AddrPort, setup func(fd int) error) (*descriptor, error) {
	s, err := listen(addr, setup)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	d := &descriptor{fd: -1}
	var dup error
	err = raw.Control(func(fd uintptr) { d.fd, dup = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = dup
	}
	return d, err
}

// control calls f with the descriptor, which stays open meanwhile.
func (d *descriptor) control(f func(fd uintptr)) error {
	d.mu.RLock()
	fd := d.fd
	if fd >= 0 {
		f(uintptr(fd))
	}
	d.mu.RUnlock()
	if fd < 0 {
		return net.ErrClosed
	}
	return nil
}

// close waits for who uses the descriptor.
func (d *descriptor) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
		d.fd = -1
	}
}

// getInt reads an integer option, 0 when that fails.
func (d *descriptor) getInt(level, name int) int {
	v := 0
	_ = d.control(func(fd uintptr) { v, _ = unix.GetsockoptInt(int(fd), level, name) })
	return v
}

// set sets an option, to a value of its own.
func (d *descriptor) set(o option, value int) (err error) {
	if closed := d.control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), o.level, o.name, value) }); closed != nil {
		return closed
	}
	return err
}
