package hixl_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

// hostile is a network on which a connection lives, and somebody who sends what
// he likes to QP1 of its first end.
type hostile struct {
	*fabric
	dialed, accepted *hixl.Conn
	stranger         *sim.Conn
	mads             [][]byte // what made the connection
}

func newHostile(t testing.TB) *hostile {
	t.Helper()
	f := newFabric(t, 2, sim.Config{Link: sim.Link{Delay: time.Microsecond}}, func(_ int, c *hixl.Config) { c.MaxQPs = 64 })
	h := &hostile{fabric: f}
	f.net.SetFilter(func(d *sim.Delivery) (v sim.Verdict) {
		if attribute(d) != 0 {
			h.mads = append(h.mads, append([]byte(nil), d.Packet.Payload...))
		}
		return v
	})
	var err error
	h.stranger, err = f.net.Host(simAddr(9))
	require.NoError(t, err)
	h.dialed, h.accepted = f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	f.net.SetFilter(nil)
	h.exchange(0, 1, h.dialed, 1)
	return h
}

// send sends a MAD to QP1 of the first host.
func (h *hostile) send(from *sim.Conn, mad []byte) {
	h.t.Helper()
	p := roce.Packet{
		Opcode: roce.OpUDSendOnly, PKey: 0xFFFF, DestQP: roce.QPNGSI, Payload: mad,
		DETH: roce.DETH{QKey: 0x80010000, SrcQP: roce.QPNGSI}, Pad: uint8(-len(mad) & 3),
	}
	b := p.Append(nil)
	headers := roce.Headers{Src: from.LocalAddr(), Dst: simAddr(0), SrcPort: 0xC123, DstPort: roce.Port, Frag: roce.DontFragment}
	headers.Seal(b)
	_, err := from.WriteBatch([]transport.Tx{{Data: b, Dst: simAddr(0), SrcPort: 0xC123}})
	require.NoError(h.t, err)
}

// unharmed checks that the connection works and that nothing has been added.
func (h *hostile) unharmed(n uint64) {
	h.t.Helper()
	h.exchange(0, 1, h.dialed, n)
	h.exchange(1, 0, h.accepted, n+1)
	s := h.hosts[0].nic.ConnStats()
	require.Equal(h.t, cm.Usage{Connections: 1}, s.Usage)
	require.Equal(h.t, 1, s.HeldQPNs)
	require.NoError(h.t, h.dialed.Err())
}

// What made a connection, damaged in any way or not at all, cannot end it or make
// another when it comes from elsewhere.
func TestMADsOfStrangers(t *testing.T) {
	h := newHostile(t)
	require.GreaterOrEqual(t, len(h.mads), 3)
	rng := rand.New(rand.NewPCG(1, 2))
	received := h.hosts[0].nic.ConnStats().Received
	total := 20000
	if raceOn {
		total = 4000
	}
	for i := range total {
		mad := append([]byte(nil), h.mads[rng.IntN(len(h.mads))]...)
		for range rng.IntN(4) {
			mad[rng.IntN(len(mad))] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 { // another message about the same connection
			binary.BigEndian.PutUint16(mad[16:], uint16(0x10+rng.IntN(12)))
		}
		if rng.IntN(20) == 0 {
			mad = mad[:rng.IntN(len(mad))]
		}
		h.send(h.stranger, mad)
		if i%100 == 0 {
			h.settle()
			h.net.Advance(h.net.Now().Add(10 * time.Microsecond))
		}
	}
	h.unharmed(2)
	require.NotEqual(t, received, h.hosts[0].nic.ConnStats().Received, "they arrived")
}

// Any bytes at all.
func FuzzMAD(f *testing.F) {
	for a := cm.AttrREQ; a <= cm.AttrAPR; a++ {
		f.Add(cm.NewMessage(a).Append(nil))
	}
	f.Add([]byte{})
	h := newHostile(f) // for all: none is to leave a trace
	n := uint64(0)
	f.Fuzz(func(t *testing.T, mad []byte) {
		h.t = t
		h.send(h.stranger, mad[:min(len(mad), 1024)])
		n += 2
		h.unharmed(n)
	})
}

// Whoever asks for more than there is room for is told so, and others are served.
func TestFloodOfRequests(t *testing.T) {
	h := newHostile(t)
	l := h.hosts[0].listen(t, ":5", hixl.AcceptOptions{})
	var req cm.REQ
	require.NoError(t, req.Decode(h.mads[0]))
	for i := range 3000 {
		m := req
		m.LocalID, m.QPN, m.CAGUID = cm.CommID(i+1), roce.QPN(i+16), 7
		m.Service = cm.PortSpaceTCP.Service(5)
		m.Primary.LocalGID, m.Primary.RemoteGID = cm.GIDOf(simAddr(9)), cm.GIDOf(simAddr(0))
		ip := cm.IPHeader{SrcPort: 1, Src: simAddr(9), Dst: simAddr(0)}
		ip.Append(m.Private[:0])
		h.send(h.stranger, m.Append(nil))
		if i%50 == 0 {
			h.net.Advance(h.net.Now().Add(10 * time.Microsecond))
			h.settle()
		}
	}
	h.net.Advance(h.net.Now().Add(time.Millisecond))
	h.settle()
	s := h.hosts[0].nic.ConnStats()
	require.Equal(t, 1+hixl.DefaultBacklog, s.Connections, "as many as the backlog")
	require.Equal(t, hixl.DefaultBacklog, s.HalfOpen)
	h.exchange(0, 1, h.dialed, 2)
	for range hixl.DefaultBacklog {
		r, err := l.AcceptRequest(over())
		require.NoError(t, err)
		require.NoError(t, r.Reject(nil))
	}
	h.settle()
	c := h.dial(1, l.Addr(), hixl.DialOptions{})
	h.until(time.Minute, func() bool { _, err := l.Accept(over()); return err == nil })
	require.True(t, closed(c.Established()))
	h.rest(time.Hour)
}
