package udp

import (
	"sync"
	"sync/atomic"
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

// One message has a call of its own, which costs less: the kernel need not find out
// that no more can be had.

func sendmmsg(fd uintptr, m []mmsghdr) (int, unix.Errno) {
	if len(m) == 1 {
		n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m[0].hdr)), unix.MSG_DONTWAIT)
		m[0].n = uint32(n)
		return 1, errno
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd,
		uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func recvmmsg(fd uintptr, m []mmsghdr) (int, unix.Errno) {
	if len(m) == 1 {
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m[0].hdr)), unix.MSG_DONTWAIT)
		m[0].n = uint32(n)
		return 1, errno
	}
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
	last atomic.Pointer[T] // enough where calls do not overlap
	lock sync.Mutex
	free []*T
	make func() *T
}

func (p *pool[T]) get() *T {
	if t := p.last.Swap(nil); t != nil {
		return t
	}
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
	if p.last.CompareAndSwap(nil, t) {
		return
	}
	p.lock.Lock()
	p.free = append(p.free, t)
	p.lock.Unlock()
}
