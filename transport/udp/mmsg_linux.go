package udp

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32 // bytes moved
}

// The calls are raw, without telling the scheduler: the sockets never block, and
// the two notices would cost a third of the call.

func sendmmsg(fd uintptr, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd,
		uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func recvmmsg(fd uintptr, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd,
		uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// portBE stores a port in network order, whatever the host's is.
func portBE(p *uint16, v uint16) {
	b := (*[2]byte)(unsafe.Pointer(p))
	b[0], b[1] = byte(v>>8), byte(v)
}

func portOf(p *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(p))
	return uint16(b[0])<<8 | uint16(b[1])
}

// pool keeps the arrays of concurrent calls; there are as many as there were
// calls at one time.
type pool[T any] struct {
	lock sync.Mutex
	free []*T
	make func() *T
}

func (p *pool[T]) get() *T {
	p.lock.Lock()
	if n := len(p.free); n > 0 {
		t := p.free[n-1]
		p.free = p.free[:n-1]
		p.lock.Unlock()
		return t
	}
	p.lock.Unlock()
	return p.make()
}

func (p *pool[T]) put(t *T) {
	p.lock.Lock()
	p.free = append(p.free, t)
	p.lock.Unlock()
}
