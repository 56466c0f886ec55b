package xdp

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// waiters wait until a part has something to read.
type waiters struct {
	mu   sync.Mutex
	free []*waiter // guarded by mu
}

// waiter is the arrays of one wait.
type waiter struct {
	fds  []unix.PollFd // the queues, the bell, the kernel's socket
	poll func(fd uintptr)
}

func (w *waiters) get(p *part) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 {
		one := w.free[n-1]
		w.free = w.free[:n-1]
		return one
	}
	n := len(p.queues)
	one := &waiter{fds: make([]unix.PollFd, n+2)}
	one.poll = func(fd uintptr) {
		for i, q := range p.queues {
			one.fds[i] = unix.PollFd{Fd: int32(q.rings.fd), Events: unix.POLLIN}
		}
		one.fds[n] = unix.PollFd{Fd: int32(p.c.bell), Events: unix.POLLIN}
		one.fds[n+1] = unix.PollFd{Fd: -1} // looked at by another part
		if p.kernel {
			one.fds[n+1] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		}
		for {
			if _, err := unix.Poll(one.fds, -1); err != unix.EINTR {
				break
			}
		}
		if one.fds[n+1].Revents != 0 {
			p.c.kernel.due.Store(true)
		}
	}
	return one
}

func (w *waiters) put(one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, one)
}

// WaitRead waits for a packet without taking it.
func (p *part) WaitRead() error {
	p.c.life.RLock()
	defer p.c.life.RUnlock()
	if err := p.c.closedError(); err != nil {
		return err
	}
	if p.pending() {
		p.gaps.add(0)
		return nil
	}
	start := time.Now()
	if p.gaps.short() && p.spin(start) {
		p.gaps.add(time.Since(start))
		return nil
	}
	w := p.wait.get(p)
	err := p.c.kernel.conn.Control(w.poll)
	p.wait.put(w)
	p.gaps.add(time.Since(start))
	if closed := p.c.closedError(); closed != nil {
		return closed
	}
	return err
}

// A spin looks at the rings so often between two looks at the clock, and at the clock
// so often between two times at which it lets others run.
const (
	looks = 32
	turns = 16
)

// pending reports whether the rings have something to read.
func (p *part) pending() bool {
	for _, q := range p.queues {
		if q.rings.rx.pending() > 0 {
			return true
		}
	}
	return false
}

// spin looks at the rings for a while, and reports whether there is something to
// read or the Conn has ended. Packets on the kernel's socket, and the bell, are for
// the wait that follows. It lets others run first: what was just received may have
// given them something to do.
func (p *part) spin(start time.Time) bool {
	for turn := 0; ; turn++ {
		if turn%turns == 0 {
			runtime.Gosched()
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		for range looks {
			if p.pending() {
				return true
			}
		}
		if p.c.closedError() != nil {
			return true
		}
		if time.Since(start) > p.gaps.most {
			return false
		}
	}
}

// ring ends the waiting of all, for good.
func (c *Conn) ring() {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.bell >= 0 {
		_, _ = unix.Write(c.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}
