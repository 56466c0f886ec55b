package perf

import (
	"fmt"
	"strings"

	"github.com/gohixl/hixl"
)

// The lines around the table, in perftest's form where both have the thing.

const waiting = `
************************************
* Waiting for client to connect... *
************************************
`

func (s *session) printTest() {
	c := s.cfg
	name := [...]string{"RDMA_Write", "RDMA_Read", "Send", "Atomic"}[c.Test.Verb]
	if c.Test.Verb == Atomic {
		name += " " + c.Atomic.String()
	}
	if c.Bidirectional {
		name += " Bidirectional"
	}
	if c.Test.Kind == Bandwidth {
		name += " BW"
	} else {
		name += " Latency"
	}
	c.Printf("%s                    %s Test\n", ruler, name)
	s.item("Device", "hixl on %v", s.dev.nic.Address())
	s.item("Number of qps", "%d", c.QPs)
	s.item("Connection type", "%v", c.Connection)
	e := engine{cfg: c}
	e.roles()
	if e.sends && c.Test.Kind == Bandwidth {
		s.item("TX depth", "%d", c.TxDepth)
	}
	if e.receives {
		s.item("RX depth", "%d", c.RxDepth)
	}
	if c.Test.Kind == Bandwidth {
		s.item("CQ Moderation", "%d", c.cqMod())
	}
	s.item("Mtu", "%d[B]", s.terms.mtu)
	if c.Test.pulls() {
		s.item("Outstand reads", "%d", c.Outs)
	} else {
		s.item("Max inline data", "%d[B]", c.Inline)
	}
	s.item("rdma_cm QPs", "%s", onOff(c.CM))
	s.item("Data ex. method", "%s", map[bool]string{false: "Ethernet", true: "rdma_cm"}[c.CM])
	c.Printf("%s", ruler)
}

func (s *session) item(name, format string, args ...any) {
	s.cfg.Printf(" %-16s: %s\n", name, fmt.Sprintf(format, args...))
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

func (s *session) printAddresses() {
	for i := range s.mine {
		s.printAddress("local", &s.mine[i])
	}
	for i := range s.theirs {
		s.printAddress("remote", &s.theirs[i])
	}
}

func (s *session) printAddress(side string, d *dest) {
	var b strings.Builder
	fmt.Fprintf(&b, " %s address: LID 0000 QPN 0x%04x PSN 0x%04x", side, d.qpn, d.psn)
	if s.cfg.Test.Verb == Read {
		fmt.Fprintf(&b, " OUT 0x%02x", d.outs)
	}
	if s.cfg.Test.Verb == Write || s.cfg.Test.Verb == Read {
		fmt.Fprintf(&b, " RKey 0x%06x VAddr 0x%014x", d.rkey, d.addr)
	}
	b.WriteString("\n GID: ")
	for i, g := range d.gid {
		if i > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%02d", g)
	}
	s.cfg.Printf("%s\n", b.String())
}

func (s *session) printHead() { s.cfg.Printf("%s%s", ruler, s.cfg.head()) }

func (s *session) printEnd() {
	s.cfg.Printf("%s", ruler)
	switch r := &s.res; {
	case r.Compared:
		s.item("Data", "every message compared with what the peer sent")
	case s.cfg.Test.Verb == Atomic && (s.cfg.Client() || r.Arrived):
		s.item("Data", "every value as it must be")
	case r.Arrived:
		s.item("Data", "arrived, lengths right; what the peer sends is not known")
	}
	if s.cfg.Connection == hixl.RC {
		s.item("Retransmitted", "%d packets", s.res.Retransmitted)
	}
}
