package xdp

import (
	"sync"

	"golang.org/x/sys/unix"
)

// waiters wait until there is something to read.
type waiters struct {
	c    *Conn
	mu   sync.Mutex
	free []*waiter // guarded by mu
}

// waiter is the arrays of one wait.
type waiter struct {
	fds  []unix.PollFd // the queues, the kernel's socket, the bell
	poll func(fd uintptr)
}

func (w *waiters) get() *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 {
		one := w.free[n-1]
		w.free = w.free[:n-1]
		return one
	}
	n := len(w.c.queues)
	one := &waiter{fds: make([]unix.PollFd, n+2)}
	one.poll = func(fd uintptr) {
		for i, q := range w.c.queues {
			one.fds[i] = unix.PollFd{Fd: int32(q.rings.fd), Events: unix.POLLIN}
		}
		one.fds[n] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		one.fds[n+1] = unix.PollFd{Fd: int32(w.c.bell), Events: unix.POLLIN}
		_, _ = unix.Poll(one.fds, -1) // a signal ends it early, which does no harm
		if one.fds[n].Revents != 0 {
			w.c.kernel.due.Store(true)
		}
	}
	return one
}

func (w *waiters) put(one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, one)
}

// ring ends the waiting of all, for good.
func (w *waiters) ring() {
	w.c.life.RLock()
	defer w.c.life.RUnlock()
	if w.c.bell >= 0 {
		_, _ = unix.Write(w.c.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// WaitRead waits for a packet without taking it.
func (c *Conn) WaitRead() error {
	c.life.RLock()
	defer c.life.RUnlock()
	if err := c.closedError(); err != nil {
		return err
	}
	w := c.wait.get()
	err := c.kernel.conn.Control(w.poll)
	c.wait.put(w)
	if closed := c.closedError(); closed != nil {
		return closed
	}
	return err
}
