package rc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
)

// connection is one recorded connection and its parameters.
type connection struct {
	packets []packet
	qpn     [2]roce.QPN
	psn     [2]roce.PSN // of the first request of each end
	sends   [2][]message
	mtu     int
	send    rc.SendConfig // of both ends, but for the PSN
	rnrCode uint8         // of the passive end
	script  *script       // nil unless vt made the recording
}

// load returns a connection of a recording. Without QPNs they are those that vt
// printed.
func load(t testing.TB, r *recording, qpn [2]roce.QPN) *connection {
	t.Helper()
	c := &connection{qpn: qpn, mtu: 1024, script: readScript(t, r.file)}
	c.send = rc.SendConfig{MaxRead: 16, Timeout: r.timeout, RetryCount: 7, RNRRetry: 7, FixedTimeout: true}
	packets := readCapture(t, r.file)
	if c.script != nil {
		c.commanded()
		c.script.drop.mark(t, packets)
	}
	c.take(t, packets)
	c.sends[active], c.sends[passive] = c.recorded(t, active), c.recorded(t, passive)
	if c.script != nil {
		c.check(t)
	}
	return c
}

// commanded takes the parameters from vt's command lines.
func (c *connection) commanded() {
	s := c.script
	o := s.options[active]
	c.mtu = o["m"]
	c.send.Timeout, c.send.RetryCount, c.send.RNRRetry = uint8(o["t"]), uint8(o["r"]), uint8(o["N"])
	c.rnrCode = uint8(s.options[passive]["M"])
	for _, end := range []side{active, passive} {
		c.qpn[end], c.psn[end] = s.ends[end].qpn, s.ends[end].psn
	}
}

// take picks the connection's packets. The stock tools print a PSN, but not for
// every connection; the first request packet has it too.
func (c *connection) take(t testing.TB, packets []packet) {
	t.Helper()
	require.NotEqual(t, c.qpn[active], c.qpn[passive])
	known := [2]bool{c.script != nil, c.script != nil}
	for _, k := range packets {
		switch k.p.DestQP {
		case c.qpn[passive]:
			k.from = active
		case c.qpn[active]:
			k.from = passive
		default:
			continue
		}
		if !known[k.from] && k.p.Opcode.IsRequest() {
			c.psn[k.from], known[k.from] = k.p.PSN, true
		}
		k.pos = len(c.packets)
		c.packets = append(c.packets, k)
	}
	require.NotEmpty(t, c.packets)
}

// check compares the work requests that vt was told to carry out with those in
// the capture.
func (c *connection) check(t testing.TB) {
	t.Helper()
	want := c.script.commanded(c.mtu)
	require.Len(t, c.sends[active], len(want))
	for i := range want {
		want[i].pos = c.sends[active][i].pos // when: only the capture tells
	}
	require.Equal(t, want, c.sends[active], "work requests by the command line and in the capture")
	require.Empty(t, c.sends[passive])
	require.Equal(t, c.script.options[active]["m"], c.script.options[passive]["m"])
}

// offset is the distance of a PSN from the first of the requests of an end.
func (c *connection) offset(from side, p roce.PSN) int { return int(p.Sub(c.psn[from])) }

// of returns the requests or the responses that an end sent.
func (c *connection) of(from side, requests bool) []packet {
	var list []packet
	for _, k := range c.packets {
		if k.from == from && k.p.Opcode.IsRequest() == requests {
			list = append(list, k)
		}
	}
	return list
}

// succeeded reports whether message i of an end succeeded in the recording.
// The stock tools would have stopped at an error.
func (c *connection) succeeded(from side, i int) bool {
	return c.script == nil || i < c.script.complete[from]
}

// acknowledged is how far the responses that an end had got before position pos
// acknowledge its requests: by ACKs, answers and NAKs, and by RNR NAKs (§3.14).
func (c *connection) acknowledged(from side, pos int) (positive, byRNR int) {
	for i := range c.packets[:pos] {
		k := &c.packets[i]
		if k.from == from || k.lost || !k.p.Opcode.IsResponse() {
			continue
		}
		at := c.offset(from, k.p.PSN)
		switch k.p.AETH.Syndrome.Kind() {
		case roce.AckRNR:
			byRNR = max(byRNR, at)
		case roce.AckNAK:
			positive = max(positive, at)
		default: // READ responses without AETH too
			positive = max(positive, at+1)
		}
	}
	return positive, byRNR
}

// receivesPosted is the packet before which the passive end posts its receives:
// the first that the recording does not answer with an RNR NAK any more; 0 if
// they were there from the start, -1 if they never were.
func (c *connection) receivesPosted() int {
	if c.script == nil || c.script.options[passive]["R"] < 0 {
		return 0
	}
	last := -1
	for i := range c.packets {
		if k := &c.packets[i]; k.from == passive && k.p.AETH.Syndrome.Kind() == roce.AckRNR {
			last = i
		}
	}
	for i := last + 1; i < len(c.packets); i++ {
		if c.packets[i].from == active {
			return i
		}
	}
	return -1
}
