package udp

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waiter parks goroutines until a socket has something, without a thread each. The
// runtime's poller does not watch the sockets themselves, which would wake a
// thread with every packet though the application may be looking already, but an
// epoll instance that looks at them only while somebody waits.
type waiter struct {
	epoll *os.File
	raw   syscall.RawConn
	socks []*descriptor // set once
	ready func(ep uintptr) bool

	// Of who waits; the file lets in one at a time.
	armed bool
	ep    uintptr
	want  unix.EpollEvent
	event unix.EpollEvent
	arm   func(fd uintptr)
}

func newWaiter(socks ...*descriptor) (*waiter, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime takes it
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	w := &waiter{epoll: os.NewFile(uintptr(fd), "epoll"), socks: socks}
	if w.raw, err = w.epoll.SyscallConn(); err != nil {
		w.close()
		return nil, err
	}
	for _, s := range socks {
		if err := w.control(unix.EPOLL_CTL_ADD, s, 0); err != nil {
			w.close()
			return nil, err
		}
	}
	w.ready, w.arm = w.look, w.request
	return w, nil
}

// control asks for events, at most once until it is called again.
func (w *waiter) control(op int, s *descriptor, events uint32) (err error) {
	closed := s.control(func(fd uintptr) {
		err = w.raw.Control(func(ep uintptr) {
			err = unix.EpollCtl(int(ep), op, int(fd), &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(fd)})
		})
	})
	if closed != nil {
		return closed
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// wait returns when a socket has something, or with net.ErrClosed after close.
func (w *waiter) wait() error {
	if w.raw.Read(w.ready) != nil {
		return net.ErrClosed
	}
	return nil
}

// look reports whether a socket has something, and asks to be woken if not. What
// a socket told is taken back by the second call, so that the next request finds
// it as it is.
func (w *waiter) look(ep uintptr) bool {
	if !w.armed {
		w.armed = true
		w.ep = ep
		for _, s := range w.socks {
			_ = s.control(w.arm) // a closed one is noticed by who reads
		}
	}
	n, _, _ := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, ep, uintptr(unsafe.Pointer(&w.event)), 1, 0, 0, 0)
	if int(n) > 0 {
		w.armed = false
		return true
	}
	return false
}

// request asks for one event of a socket.
func (w *waiter) request(fd uintptr) {
	w.want = unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(fd)}
	_, _, _ = unix.RawSyscall6(unix.SYS_EPOLL_CTL, w.ep, unix.EPOLL_CTL_MOD, fd, uintptr(unsafe.Pointer(&w.want)), 0, 0)
}

// close wakes who waits.
func (w *waiter) close() { _ = w.epoll.Close() }
