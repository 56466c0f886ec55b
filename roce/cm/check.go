package cm

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/roce"
)

// ranged is a parameter with its largest value.
type ranged struct {
	name     string
	val, max uint8
}

func checkRanges(rs []ranged) error {
	for _, r := range rs {
		if r.val > r.max {
			return &ParamError{Param: r.name, Value: r.val, Allowed: fmt.Sprintf("0 to %d", r.max)}
		}
	}
	return nil
}

func checkLen(name string, b []byte, most int) error {
	if len(b) > most {
		return &ParamError{Param: "length of " + name, Value: len(b), Allowed: fmt.Sprintf("at most %d bytes", most)}
	}
	return nil
}

func checkPSN(p *roce.PSN) error {
	if p != nil && *p > roce.PSNMask {
		return &ParamError{Param: "StartPSN", Value: *p, Allowed: "24 bits"}
	}
	return nil
}

// checkPeer refuses a destination that a NIC of our address cannot reach.
func (a *Agent) checkPeer(p *netip.Addr) error {
	*p = p.Unmap()
	if !usable(*p) || p.Is4() != a.cfg.Addr.Is4() {
		return &ParamError{Param: "Peer", Value: *p, Allowed: fmt.Sprintf("a unicast address of the family of %v", a.cfg.Addr)}
	}
	return nil
}

// room returns how much of n bytes of private data is the user's.
func room(s ServiceID, n int) int {
	if s.HasIPHeader() {
		return n - IPHeaderLen
	}
	return n
}

// connected reports whether a service is reached by connections, datagram whether
// by SIDR. Service ids that are none of RDMA CM's may be either.
func connected(s ServiceID) bool {
	space, _, ok := s.Port()
	return !ok || space == PortSpaceTCP || space == PortSpaceIB
}

func datagram(s ServiceID) bool {
	space, _, ok := s.Port()
	return !ok || space == PortSpaceUDP || space == PortSpaceIPoIB
}

// source reads and judges the IP header of a request from src (§5.5). A reason of
// 0 is approval. Services without header have no ports.
func (a *Agent) source(r *Request, src netip.Addr, private []byte) (rest []byte, reason Reason, info []byte) {
	_, port, ok := r.Service.Port()
	if !ok {
		return private, 0, nil
	}
	var h IPHeader
	if err := h.Decode(private); err != nil {
		return nil, ReasonUnsupported, nil
	}
	switch {
	case h.Src != src.WithZone(""), !a.welcome(h.Src):
		gid := GIDOf(src)
		return nil, ReasonGID, gid[:]
	case h.Dst != a.local():
		return nil, ReasonServiceID, nil
	}
	r.Src = netip.AddrPortFrom(src, h.SrcPort)
	r.Dst = netip.AddrPortFrom(a.cfg.Addr, port)
	return private[IPHeaderLen:], 0, nil
}

// welcome reports whether a source address makes sense; loopback only to a NIC on
// loopback (§5.5).
func (a *Agent) welcome(src netip.Addr) bool {
	return usable(src) && (!src.IsLoopback() || a.cfg.Addr.IsLoopback())
}
