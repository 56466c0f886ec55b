package xdp

import (
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Neighbour states in which the hardware address may be used, and those of them
// that the kernel does not look after.
const (
	nudUsable = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | nudFixed
	nudFixed  = netlink.NUD_PERMANENT | netlink.NUD_NOARP
)

// resolve asks the kernel for the way to a destination.
func (w *watcher) resolve(p *path) {
	p.hop, p.since = netip.Addr{}, time.Now()
	opt := &netlink.RouteGetOptions{SrcAddr: w.c.addr.AsSlice()}
	if p.dst.IsLinkLocalUnicast() && p.dst.Is6() {
		opt.OifIndex = w.c.link.out
	}
	routes, err := w.h.RouteGetWithOptions(p.dst.AsSlice(), opt)
	if err != nil || len(routes) == 0 {
		w.conclude(p, pathUnreachable)
		return
	}
	r := &routes[0]
	switch {
	case r.Type == unix.RTN_LOCAL || (r.Type == unix.RTN_UNICAST && r.LinkIndex != w.c.link.out):
		w.conclude(p, pathKernel)
		return
	case r.Type != unix.RTN_UNICAST:
		w.conclude(p, pathUnreachable)
		return
	}
	p.hop, p.mtu = p.dst, r.MTU
	if gw, ok := netip.AddrFromSlice(r.Gw); ok && !gw.IsUnspecified() {
		p.hop = gw.Unmap()
	} else if via, ok := r.Via.(*netlink.Via); ok { // an IPv6 gateway of an IPv4 route
		if gw, ok := netip.AddrFromSlice(via.Addr); ok {
			p.hop = gw
		}
	}
	w.neighbour(p, w.find(p.hop))
}

// find returns what the kernel knows of a neighbour on our link, or nil.
func (w *watcher) find(hop netip.Addr) *netlink.Neigh {
	family := netlink.FAMILY_V4
	if hop.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := w.h.NeighList(w.c.link.out, family)
	if err != nil {
		w.c.cfg.Logger.Debug("neighbours not listed", "error", err)
	}
	for i := range all {
		if a, ok := netip.AddrFromSlice(all[i].IP); ok && a.Unmap() == hop {
			return &all[i]
		}
	}
	return nil
}

// neighbour acts on what is known of a path's next hop.
func (w *watcher) neighbour(p *path, n *netlink.Neigh) {
	switch {
	case n != nil && n.State&nudUsable != 0 && len(n.HardwareAddr) == 6:
		w.ready(p, [6]byte(n.HardwareAddr))
		if n.State == netlink.NUD_STALE {
			w.probe(p.hop)
		}
	case n != nil && n.State&netlink.NUD_FAILED != 0 && p.state() == pathAsked && time.Since(p.since) > failedGrace:
		w.conclude(p, pathUnreachable)
	default:
		p.set(pathAsked)
		w.probe(p.hop)
	}
}

// failedGrace is how long a failure may be that of a question before ours.
const failedGrace = 100 * time.Millisecond

// probe has the kernel resolve or verify a neighbour, as if it had something to
// send to it.
func (w *watcher) probe(hop netip.Addr) {
	family := netlink.FAMILY_V4
	if hop.Is6() {
		family = netlink.FAMILY_V6
	}
	err := w.h.NeighSet(&netlink.Neigh{LinkIndex: w.c.link.out, Family: family, Flags: netlink.NTF_USE, IP: hop.AsSlice()})
	if err != nil {
		w.c.cfg.Logger.Debug("neighbour not asked for", "neighbour", hop, "error", err)
	}
}

// ready makes the path's template and sends what waits.
func (w *watcher) ready(p *path, mac [6]byte) {
	c := w.c
	mtu := int(c.link.mtu.Load())
	if p.mtu > 0 {
		mtu = min(mtu, p.mtu)
	}
	p.tmpl.Store(newTemplate(&shape{
		src: c.addr, dst: p.dst, srcMAC: *c.link.mac.Load(), dstMAC: mac, vlan: c.link.vlan, tagged: c.link.tagged,
		hopLimit: uint8(c.cfg.HopLimit), checksum: c.cfg.Checksum, mtu: mtu,
	}))
	w.conclude(p, pathReady)
}

// conclude ends the asking.
func (w *watcher) conclude(p *path, s pathState) {
	p.set(s)
	p.checked = time.Now()
	for _, q := range w.c.queues {
		q.settle(p)
	}
}
