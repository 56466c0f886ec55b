package xdp

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rings are a socket and what it shares with the kernel.
type rings struct {
	fd             int
	rx, fill       *ring
	tx, comp       *ring
	needWakeup     bool
	zeroCopy, frag bool
}

// busyPollBudget is how many packets a busy poll takes from the driver.
const busyPollBudget = 64

// openRings makes a socket with its rings on mem, which first registers; the other
// sockets share it.
func openRings(m *memory, first bool) (_ *rings, err error) {
	r := &rings{fd: -1}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return r, err
	}
	if first {
		reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&m.buf[0]))), Len: uint64(len(m.buf)), Size: uint32(m.chunk)}
		if err = setopt(r.fd, unix.XDP_UMEM_REG, unsafe.Pointer(&reg), unsafe.Sizeof(reg)); err != nil {
			return r, err
		}
	}
	return r, r.mapRings(&m.layout)
}

func (r *rings) mapRings(l *layout) error {
	rx, tx := powerOfTwo(l.rx), powerOfTwo(l.tx*l.descs())
	for _, s := range []struct{ opt, size int }{
		{unix.XDP_UMEM_FILL_RING, rx}, {unix.XDP_UMEM_COMPLETION_RING, tx}, {unix.XDP_RX_RING, rx}, {unix.XDP_TX_RING, tx},
	} {
		size := uint32(s.size)
		if err := setopt(r.fd, s.opt, unsafe.Pointer(&size), unsafe.Sizeof(size)); err != nil {
			return err
		}
	}
	var off unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(off))
	if err := getopt(r.fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&off), &size); err != nil {
		return err
	}
	if size != uint32(unsafe.Sizeof(off)) {
		return unix.EOPNOTSUPP // a kernel before 5.4, whose rings have no flags
	}
	for _, s := range []struct {
		to    **ring
		page  int64
		off   *unix.XDPRingOffset
		size  int
		width int
	}{
		{&r.fill, unix.XDP_UMEM_PGOFF_FILL_RING, &off.Fr, rx, 8},
		{&r.comp, unix.XDP_UMEM_PGOFF_COMPLETION_RING, &off.Cr, tx, 8},
		{&r.rx, unix.XDP_PGOFF_RX_RING, &off.Rx, rx, descSize},
		{&r.tx, unix.XDP_PGOFF_TX_RING, &off.Tx, tx, descSize},
	} {
		m, err := mapRing(r.fd, s.page, s.off, s.size, s.width)
		if err != nil {
			return err
		}
		*s.to = m
	}
	return nil
}

func setopt(fd, opt int, p unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(opt), uintptr(p), size, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func getopt(fd, opt int, p unsafe.Pointer, size *uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(opt), uintptr(p), uintptr(unsafe.Pointer(size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// tune sets what helps and may be missing.
func (r *rings) tune(cfg *Config) {
	_ = unix.SetsockoptInt(r.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, cfg.TxBudget)
	if unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, txBytes) != nil {
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, txBytes)
	}
	if us := int(cfg.BusyPoll / time.Microsecond); us > 0 {
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1)
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, us)
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL_BUDGET, busyPollBudget)
	}
}

// Timing of a bind that finds the queue taken: the kernel lets go of a closed
// socket's queue some milliseconds later.
const (
	rebindFor  = 500 * time.Millisecond
	rebindStep = 2 * time.Millisecond
)

// bind ties the socket to a queue of a link, in the best way of those that are
// allowed. With shared not negative it uses that socket's memory and ways.
func (r *rings) bind(index, queue int, ways []uint16, shared int) error {
	sa := &unix.SockaddrXDP{Ifindex: uint32(index), QueueID: uint32(queue)}
	if shared >= 0 {
		sa.Flags, sa.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(shared)
		return retryBusy(func() error { return unix.Bind(r.fd, sa) })
	}
	var err error
	for _, way := range ways {
		sa.Flags = way
		if err = retryBusy(func() error { return unix.Bind(r.fd, sa) }); err == nil {
			r.needWakeup = way&unix.XDP_USE_NEED_WAKEUP != 0
			r.frag = way&unix.XDP_USE_SG != 0
			r.zeroCopy = r.isZeroCopy()
			return nil
		}
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EPERM) {
			return err
		}
	}
	return err
}

func retryBusy(try func() error) error {
	for end := time.Now().Add(rebindFor); ; time.Sleep(rebindStep) {
		err := try()
		if !errors.Is(err, unix.EBUSY) || !time.Now().Before(end) {
			return err
		}
	}
}

func (r *rings) isZeroCopy() bool {
	var flags uint32
	size := uint32(unsafe.Sizeof(flags))
	err := getopt(r.fd, unix.XDP_OPTIONS, unsafe.Pointer(&flags), &size)
	return err == nil && flags&unix.XDP_OPTIONS_ZEROCOPY != 0
}

// bindWays lists the flags to try, the best first.
func bindWays(z ZeroCopy, native, fragsNeeded bool) (ways []uint16) {
	const wakeup = unix.XDP_USE_NEED_WAKEUP
	add := func(copyMode uint16) {
		ways = append(ways, copyMode|wakeup|unix.XDP_USE_SG)
		if !fragsNeeded {
			ways = append(ways, copyMode|wakeup)
		}
	}
	if z != ZeroCopyOff && native {
		add(unix.XDP_ZEROCOPY)
	}
	if z != ZeroCopyOnly {
		add(unix.XDP_COPY)
	}
	return ways
}

func (r *rings) statistics() (s unix.XDPStatistics) {
	size := uint32(unsafe.Sizeof(s))
	_ = getopt(r.fd, unix.XDP_STATISTICS, unsafe.Pointer(&s), &size)
	return s
}

// send has the kernel look at the send ring.
func (r *rings) send() unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// poll has the kernel look at the fill ring, and at the driver when busy polling.
func (r *rings) poll() {
	_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}

func (r *rings) close() {
	for _, each := range []*ring{r.rx, r.fill, r.tx, r.comp} {
		each.unmap()
	}
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
		r.fd = -1
	}
}
