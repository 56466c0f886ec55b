package veth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pair is two namespaces whose links are joined. Its methods may be called from
// any goroutine.
type Pair struct {
	cfg Config
	ns  [2]int // descriptors, -1 when there is none
	h   [2]*netlink.Handle
}

// New makes a Pair. Whoever makes it closes it.
func New(cfg Config) (*Pair, error) {
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	if cfg.Queues == 0 {
		cfg.Queues = 1
	}
	p := &Pair{cfg: cfg, ns: [2]int{-1, -1}}
	if err := p.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("veth: making two namespaces and a link between them: %w", err), p.Close())
	}
	return p, nil
}

func (p *Pair) open() error {
	for i := range p.ns {
		if err := onThread(func() (err error) {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("a network namespace needs CAP_SYS_ADMIN: %w", err)
			}
			if p.ns[i], err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				return err
			}
			noDAD()
			p.h[i], err = netlink.NewHandle(unix.NETLINK_ROUTE)
			return err
		}); err != nil {
			return err
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = Links[0], p.cfg.MTU
	attrs.NumTxQueues, attrs.NumRxQueues = p.cfg.Queues, p.cfg.Queues
	if err := p.h[0].LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: Links[1], PeerNamespace: netlink.NsFd(p.ns[1]),
		PeerNumTxQueues: uint32(p.cfg.Queues), PeerNumRxQueues: uint32(p.cfg.Queues), PeerMTU: uint32(p.cfg.MTU),
	}); err != nil {
		return err
	}
	for i := range p.ns {
		if err := p.setUp(i); err != nil {
			return fmt.Errorf("%s: %w", Links[i], err)
		}
	}
	return nil
}

// noDAD lets IPv6 addresses be used at once: nobody else is here to have them. A
// kernel without IPv6 lacks the files.
func noDAD() {
	for _, which := range []string{"all", "default"} {
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/accept_dad", []byte("0"), 0)
	}
}

// setUp gives an end its addresses.
func (p *Pair) setUp(i int) error {
	h := p.h[i]
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	l, err := h.LinkByName(Links[i])
	if err != nil {
		return err
	}
	if err := errors.Join(h.LinkSetUp(lo), h.LinkSetUp(l)); err != nil {
		return err
	}
	if p.cfg.VLAN > 0 {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = VLANs[i], l.Attrs().Index
		if err := h.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: p.cfg.VLAN, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}); err != nil {
			return err
		}
		if l, err = h.LinkByName(VLANs[i]); err != nil {
			return err
		}
		if err := h.LinkSetUp(l); err != nil {
			return err
		}
	}
	if err := h.AddrAdd(l, address(Addrs4[i], 24)); err != nil {
		return err
	}
	// A kernel without IPv6 refuses the second, which whoever wants it will see.
	if h.AddrAdd(l, address(Addrs6[i], 64)) != nil {
		return nil
	}
	return routed(h, Addrs6[i])
}

// routed waits until a is an address of this end to all: the kernel accepts an IPv6
// address at once but makes its route later, and what is sent to it meanwhile goes
// to the other end.
func routed(h *netlink.Handle, a netip.Addr) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		routes, err := h.RouteGet(a.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("no local route to %v after 5 s", a), err)
		}
	}
}

func address(a netip.Addr, bits int) *netlink.Addr {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}}
	if a.Is6() {
		addr.Flags = unix.IFA_F_NODAD // it can be used at once
	}
	return addr
}

// Do calls f on a thread in the namespace of end i, 0 or 1. Sockets that it opens
// stay there. Goroutines that it starts do not run there.
func (p *Pair) Do(i int, f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(p.ns[i], unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("veth: entering the namespace of %s: %w", Links[i], err)
		}
		return f()
	})
}

// Handle is for changes to what end i has: links, addresses, routes, neighbours.
func (p *Pair) Handle(i int) *netlink.Handle { return p.h[i] }

// Namespace is the descriptor of the namespace of end i, open until Close.
func (p *Pair) Namespace(i int) int { return p.ns[i] }

// onThread calls f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		var err error
		ended := false
		defer func() {
			if !ended { // f ended the goroutine, as a failed test does
				err = errors.New("veth: the function did not return")
			}
			done <- err
		}()
		runtime.LockOSThread() // and never unlocked
		err = f()
		ended = true
	}()
	return <-done
}

// Close lets the namespaces go. They end with the last socket and process in them,
// and the links with the first of them.
func (p *Pair) Close() error {
	if p.h[0] != nil {
		if l, err := p.h[0].LinkByName(Links[0]); err == nil {
			_ = p.h[0].LinkDel(l) // at once, even if somebody still has a socket there
		}
	}
	for i := range p.ns {
		if p.h[i] != nil {
			p.h[i].Close()
			p.h[i] = nil
		}
		if p.ns[i] >= 0 {
			_ = unix.Close(p.ns[i])
			p.ns[i] = -1
		}
	}
	return nil
}
