package xdp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Timing of the watcher.
const (
	watchTick    = time.Second
	verifyAfter  = 15 * time.Second // a neighbour in use is verified that often
	askFor       = 5 * time.Second  // then a neighbour counts as unreachable
	forgetTicks  = 600              // an unused path is forgotten
	netlinkWait  = 2 * time.Second  // for an answer of the kernel
	eventsBuffer = 1 << 20          // bytes of announcements that can wait
)

// watcher keeps paths and link as the kernel has them. Its fields belong to its
// goroutine.
type watcher struct {
	c     *Conn
	h     *netlink.Handle
	sub   *nl.NetlinkSocket
	said  chan syscall.NetlinkMessage
	lost  chan struct{} // capacity 1: announcements were lost
	quit  chan struct{}
	group sync.WaitGroup
	stale bool // routes or links changed: every path is asked for again
}

// newWatcher opens its netlink sockets in the caller's network namespace.
func newWatcher() (*watcher, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := h.SetSocketTimeout(netlinkWait); err != nil {
		h.Close()
		return nil, err
	}
	sub, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		h.Close()
		return nil, err
	}
	_ = sub.SetReceiveBufferSize(eventsBuffer, true)
	return &watcher{
		h: h, sub: sub, said: make(chan syscall.NetlinkMessage, 64), lost: make(chan struct{}, 1), quit: make(chan struct{}),
	}, nil
}

func (w *watcher) start(c *Conn) {
	w.c = c
	w.group.Go(w.listen)
	w.group.Go(w.run)
}

// stop ends the goroutines, if they were started.
func (w *watcher) stop() {
	close(w.quit)
	w.sub.Close()
	w.group.Wait()
	w.h.Close()
}

// listen reads announcements.
func (w *watcher) listen() {
	for {
		said, from, err := w.sub.Receive()
		switch {
		case errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.EBADF):
			return
		case err != nil: // ENOBUFS: some were lost
			select {
			case w.lost <- struct{}{}:
			default:
			}
			select {
			case <-w.quit:
				return
			case <-time.After(time.Millisecond):
			}
			continue
		case from.Pid != 0: // not the kernel
			continue
		}
		for i := range said {
			select {
			case w.said <- said[i]:
			case <-w.quit:
				return
			}
		}
	}
}

func (w *watcher) run() {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case m := <-w.said:
			w.hear(&m)
			for len(w.said) > 0 { // many come at a time, and one look is enough
				m = <-w.said
				w.hear(&m)
			}
		case <-w.lost:
			w.stale = true
			w.lookAtLink()
		case <-w.c.paths.wake:
			for _, p := range w.c.paths.asked() {
				w.resolve(p)
			}
		case now := <-tick.C:
			w.look(now)
		}
		if w.stale {
			w.stale = false
			w.refresh()
		}
	}
}

// hear acts on one announcement.
func (w *watcher) hear(m *syscall.NetlinkMessage) {
	l := w.c.link
	switch m.Header.Type {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		n, err := netlink.NeighDeserialize(m.Data)
		if err == nil && n.LinkIndex == l.out {
			w.hearNeighbour(n, m.Header.Type == unix.RTM_DELNEIGH)
		}
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		w.stale = true
	case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if index := subject(m); index == l.index || index == l.out {
			w.lookAtLink()
		}
	}
}

// subject is the index of the link that an announcement of a link or an address is
// about.
func subject(m *syscall.NetlinkMessage) int {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if len(m.Data) >= unix.SizeofIfInfomsg {
			return int(nl.DeserializeIfInfomsg(m.Data).Index)
		}
	default:
		if len(m.Data) >= unix.SizeofIfAddrmsg {
			return int(nl.DeserializeIfAddrmsg(m.Data).Index)
		}
	}
	return -1
}

func (w *watcher) hearNeighbour(n *netlink.Neigh, deleted bool) {
	hop, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return
	}
	hop = hop.Unmap()
	for _, p := range w.c.paths.list() {
		if p.hop != hop {
			continue
		}
		switch s := p.state(); {
		case deleted || n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE) != 0:
			if s == pathAsked && n.State&netlink.NUD_FAILED != 0 {
				w.conclude(p, pathUnreachable)
			} else if s == pathReady {
				p.set(pathIdle) // who sends next asks
			}
		case n.State&nudUsable != 0 && len(n.HardwareAddr) == 6:
			if t := p.tmpl.Load(); s != pathReady || [6]byte(t.head[:]) != [6]byte(n.HardwareAddr) {
				w.ready(p, [6]byte(n.HardwareAddr))
			}
		}
	}
}

// lookAtLink asks the kernel how the link is, and tells what has changed.
func (w *watcher) lookAtLink() {
	l := w.c.link
	bound, err := w.h.LinkByIndex(l.index)
	owner := bound
	if err == nil && l.out != l.index {
		owner, err = w.h.LinkByIndex(l.out)
	}
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		w.c.fail(&LinkError{l.name})
		return
	}
	if err != nil || len(owner.Attrs().HardwareAddr) != 6 {
		w.c.cfg.Logger.Debug("link not read", "link", l.name, "error", err)
		return
	}
	up, here, mtu, mac := l.up, l.here, l.mtu.Load(), *l.mac.Load()
	if has, err := w.hasAddr(owner); err == nil {
		l.here = has
	}
	l.see(bound.Attrs(), owner.Attrs())
	for _, e := range []struct {
		happened bool
		kind     EventKind
	}{
		{up && !l.up, LinkDown},
		{!up && l.up, LinkUp},
		{here && !l.here, AddressLost},
		{!here && l.here, AddressBack},
		{mtu != l.mtu.Load(), MTUChanged},
		{mac != *l.mac.Load(), MACChanged},
	} {
		if e.happened {
			w.stale = true
			w.c.tell(e.kind)
		}
	}
}

func (w *watcher) hasAddr(l netlink.Link) (bool, error) {
	family := netlink.FAMILY_V4
	if w.c.addr.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := w.h.AddrList(l, family)
	for i := range all {
		if a, ok := netip.AddrFromSlice(all[i].IP); ok && a.Unmap() == w.c.addr {
			return true, nil
		}
	}
	return false, err
}

// refresh asks for every path anew: those in use at once, the rest when they are
// needed.
func (w *watcher) refresh() {
	for _, p := range w.c.paths.list() {
		switch p.state() {
		case pathIdle:
		case pathAsked:
			w.resolve(p)
		default:
			if p.used.Load() && w.c.link.usable.Load() {
				w.resolve(p)
			} else {
				p.set(pathIdle)
			}
		}
	}
	for _, q := range w.c.queues {
		q.txMu.Lock()
		q.kick() // what was left in the ring when the link went down
		q.txMu.Unlock()
	}
}

// look goes through the paths once a second: neighbours in use are verified now and
// then, as the kernel does for its own traffic, silent ones given up, unused paths
// forgotten.
func (w *watcher) look(now time.Time) {
	for _, p := range w.c.paths.list() {
		used := p.used.Swap(false)
		if used {
			p.unused = 0
		} else if p.unused++; p.unused > forgetTicks && p.state() != pathAsked {
			w.c.paths.forget(p)
			continue
		}
		switch p.state() {
		case pathAsked:
			if now.Sub(p.since) > askFor {
				w.conclude(p, pathUnreachable)
			}
		case pathUnreachable:
			p.set(pathIdle) // whoever sends next asks again
		case pathReady:
			if used && now.Sub(p.checked) > verifyAfter {
				p.checked = now
				w.neighbour(p, w.find(p.hop))
			}
		case pathIdle, pathKernel:
		}
	}
}
