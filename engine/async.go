package engine

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// errTasksFull is why an asynchronous call is refused.
var errTasksFull = fault(StatusResourceExhausted, "the queue of links to be connected and disconnected is full, see connect_pool.task_queue_capacity; try again later")

// ConnectAsync begins a [Engine.Connect] that has timeout, 0 for [DefaultTimeout], from the
// moment when its turn comes. [Engine.GetAsyncConnectStatus] tells what became of it.
// The error is that of Connect before anything is sent, or
// [StatusResourceExhausted] when connect_pool.task_queue_capacity wait already.
func (e *Engine) ConnectAsync(remote string, timeout time.Duration) error {
	return fail("ConnectAsync", remote, e.connectAsync(remote, timeout))
}

func (e *Engine) connectAsync(remote string, timeout time.Duration) error {
	at, timeout, err := parseAsync(remote, timeout)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.links[at]
	l, err := e.newLink(at, ConnectPending)
	if err != nil {
		return err
	}
	if e.tasks.add(func() { e.connectLater(l, timeout) }) {
		return nil
	}
	l.stop()
	delete(e.links, at)
	if before != nil {
		e.links[at] = before
	}
	return errTasksFull
}

func parseAsync(remote string, timeout time.Duration) (netip.AddrPort, time.Duration, error) {
	at, err := parseRemote(remote)
	switch {
	case err != nil:
		return at, 0, err
	case timeout < 0:
		return at, 0, invalid("timeout %v, allowed: 0 for %v, or more", timeout, DefaultTimeout)
	case timeout == 0:
		timeout = waits.call
	}
	return at, timeout, nil
}

// connectLater connects a link whose turn has come.
func (e *Engine) connectLater(l *link, timeout time.Duration) {
	if !e.advance(l, ConnectPending, Connecting) {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, timeout)
	defer cancel()
	_ = e.establish(ctx, l) // the link's state tells
}

// advance moves a link from one state to the next.
func (e *Engine) advance(l *link, from, to AsyncConnectStatus) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.state != from {
		return false
	}
	l.state = to
	return true
}

// DisconnectAsync begins a [Engine.Disconnect], likewise. The link is gone when its
// state is [NotConnect].
func (e *Engine) DisconnectAsync(remote string, timeout time.Duration) error {
	return fail("DisconnectAsync", remote, e.disconnectAsync(remote, timeout))
}

func (e *Engine) disconnectAsync(remote string, timeout time.Duration) error {
	at, timeout, err := parseAsync(remote, timeout)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.tasks.queue) == cap(e.tasks.queue) { // others take from it, but only here is put
		return errors.Join(e.openLocked(), errTasksFull)
	}
	l, err := e.leave(at, DisconnectPending)
	if err != nil {
		return err
	}
	e.tasks.add(func() { e.disconnectLater(l, timeout) })
	return nil
}

func (e *Engine) disconnectLater(l *link, timeout time.Duration) {
	if !e.advance(l, DisconnectPending, Disconnecting) {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, timeout)
	defer cancel()
	_ = e.end(ctx, l) // the link is gone in any case
}

// GetAsyncConnectStatus returns how far the link to remote is, whichever call began
// it. With [ConnectFailed] the error says why: that is also the state of a link that
// was connected and has failed since.
func (e *Engine) GetAsyncConnectStatus(remote string) (AsyncConnectStatus, error) {
	s, err := e.linkStatus(remote)
	return s, fail("GetAsyncConnectStatus", remote, err)
}

func (e *Engine) linkStatus(remote string) (AsyncConnectStatus, error) {
	at, err := parseRemote(remote)
	if err != nil {
		return NotConnect, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openLocked(); err != nil {
		return NotConnect, err
	}
	l := e.links[at]
	if l == nil {
		return NotConnect, nil
	}
	return l.status()
}

// status is the link's state. The engine's mu is held.
func (l *link) status() (AsyncConnectStatus, error) {
	if l.state == Connected && l.err == nil {
		l.err = l.peer.Err()
	}
	switch {
	case l.state == Connected && l.err != nil, l.state == ConnectFailed:
		return ConnectFailed, l.err
	}
	return l.state, nil
}

// GetAsyncConnectStatuses returns the states of all links, by the remote engine's
// name as ip:port.
func (e *Engine) GetAsyncConnectStatuses() (map[string]AsyncConnectStatus, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openLocked(); err != nil {
		return nil, fail("GetAsyncConnectStatuses", "", err)
	}
	all := make(map[string]AsyncConnectStatus, len(e.links))
	for at, l := range e.links {
		all[at.String()], _ = l.status()
	}
	return all, nil
}
