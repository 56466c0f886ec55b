package hostiletest

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
	"github.com/gohixl/hixl/transport/udp"
)

// siege is a NIC with a listener for connections, one for datagrams and a live
// connection to an honest NIC, while strangers send to its QP1 what they like.
type siege struct {
	t         *testing.T
	rng       *rand.Rand
	net       *sim.Network // nil over sockets
	ends      [2]*siegeEnd // of the NIC besieged, of the honest one
	strangers []transport.Conn
	rx        []transport.Rx
	listener  *hixl.Listener
	round     byte
}

type siegeEnd struct {
	nic  *hixl.NIC
	conn *hixl.Conn
	spy  *spy
	cq   *hixl.CQ
	mem  *hixl.Region
	cfg  hixl.QPConfig
}

// spy keeps what a NIC sends to QP1 of others.
type spy struct {
	transport.Conn
	mu   sync.Mutex
	mads [][]byte // guarded by mu
}

func (s *spy) WriteBatch(txs []transport.Tx) (int, error) {
	for i := range txs {
		var p roce.Packet
		if p.Decode(txs[i].Data) == nil && p.DestQP == roce.QPNGSI && len(p.Payload) == cm.MADLen {
			s.mu.Lock()
			s.mads = append(s.mads, append([]byte(nil), p.Payload...))
			s.mu.Unlock()
		}
	}
	return s.Conn.WriteBatch(txs)
}

// siegeBacklog is how many requests may wait.
const siegeBacklog = 32

func newSiege(t *testing.T, seed uint64, net *sim.Network, strangers int, addr func(i int) netip.Addr) *siege {
	s := &siege{t: t, net: net, rng: rand.New(rand.NewPCG(seed, 0x51e6e))}
	open := func(i int) transport.Conn {
		c, err := transport.Conn(nil), error(nil)
		if net != nil {
			c, err = net.Host(addr(i))
		} else {
			c, err = udp.Open(addr(i), udp.Config{})
		}
		require.NoError(t, err)
		return c
	}
	for i := range s.ends {
		e := &siegeEnd{spy: &spy{Conn: open(i)}}
		cfg := hixl.Config{Transport: e.spy, MaxQPs: 64}
		if net != nil {
			cfg.Stepped, cfg.Clock = true, net.Now
		}
		var err error
		e.nic, err = hixl.OpenNIC(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.nic.Close()) })
		e.cq, err = e.nic.CreateCQ(256)
		require.NoError(t, err)
		pd := e.nic.AllocPD()
		e.mem, err = pd.Register(make([]byte, 4096), hixl.LocalWrite|hixl.RemoteWrite|hixl.RemoteRead)
		require.NoError(t, err)
		e.cfg = hixl.QPConfig{PD: pd, SendCQ: e.cq, RecvCQ: e.cq, SignalAll: true}
		s.ends[i] = e
	}
	for i := range strangers {
		c := open(len(s.ends) + i)
		t.Cleanup(func() { _ = c.Close() })
		s.strangers = append(s.strangers, c)
	}
	s.rx = transport.NewBatch(s.strangers[0], 64)
	s.open()
	return s
}

// open makes the listeners and the live connection.
func (s *siege) open() {
	t, a := s.t, s.ends[0]
	var err error
	s.listener, err = a.nic.Listen(t.Context(), ":5", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: a.cfg}, Backlog: siegeBacklog})
	require.NoError(t, err)
	ud := a.cfg
	ud.Type, ud.QKey = hixl.UD, hixl.DefaultQKey
	q, err := a.nic.CreateQP(ud)
	require.NoError(t, err)
	require.NoError(t, q.Activate())
	_, err = a.nic.ListenUD(t.Context(), ":5", hixl.UDConfig{QP: q})
	require.NoError(t, err)
	s.ends[1].conn, a.conn = s.dial()
	s.exchange()
}

// startDial begins a connection of the honest NIC to the one besieged.
func (s *siege) startDial() *hixl.Conn {
	c, err := s.ends[1].nic.StartDial(s.listener.Addr(), hixl.DialOptions{QPConfig: s.ends[1].cfg})
	require.NoError(s.t, err)
	return c
}

// dial connects the honest NIC to the one besieged. Where the strangers' requests
// fill the backlog it is told so, and asks again.
func (s *siege) dial() (dialed, accepted *hixl.Conn) {
	dialed = s.startDial()
	s.until("a connection", func() bool {
		ctx, cancel := s.over()
		defer cancel()
		for { // the strangers' requests come first
			r, err := s.listener.AcceptRequest(ctx)
			if err != nil {
				break
			}
			if r.RemoteAddr().Addr() != s.ends[1].nic.Address() {
				_ = r.Reject(nil)
				continue
			}
			accepted, err = r.Accept(hixl.AcceptOptions{QPConfig: s.ends[0].cfg})
			require.NoError(s.t, err)
		}
		select {
		case <-dialed.Established():
			return accepted != nil
		case <-dialed.Done():
			var rejected *hixl.RejectedError
			require.ErrorAs(s.t, dialed.Err(), &rejected)
			require.Equal(s.t, hixl.RejectNoResources, rejected.Reason)
			dialed = s.startDial()
		default:
		}
		return false
	})
	return dialed, accepted
}

// settle lets everything happen that can at this time.
func (s *siege) settle() {
	if s.net == nil {
		time.Sleep(300 * time.Microsecond)
		return
	}
	for worked := true; worked; {
		s.net.Advance(s.net.Now())
		worked = false
		for _, e := range s.ends {
			worked = e.nic.Poll(s.net.Now()) || worked
		}
	}
	for _, c := range s.strangers {
		for n := 1; n > 0; {
			n, _ = c.ReadBatch(s.rx, false)
		}
	}
}

// pass lets a time go by, and what it brings happen.
func (s *siege) pass(d time.Duration) {
	for end := s.net.Now().Add(d); ; s.settle() {
		next := mono.Earliest(s.net.Next(), mono.Earliest(s.ends[0].nic.Next(), s.ends[1].nic.Next()))
		if next.IsZero() || end.Before(next) {
			s.net.Advance(end)
			return
		}
		s.net.Advance(max(next, s.net.Now().Add(time.Microsecond)))
	}
}

func (s *siege) until(what string, done func() bool) {
	s.t.Helper()
	if s.net == nil {
		require.Eventually(s.t, done, 2*time.Minute, time.Millisecond, what)
		return
	}
	for end := s.net.Now().Add(time.Minute); !done(); s.pass(10 * time.Microsecond) {
		require.Less(s.t, s.net.Now(), end, what)
	}
}

// exchange uses the live connection and checks every byte.
func (s *siege) exchange() {
	s.t.Helper()
	a, b := s.ends[0], s.ends[1]
	s.round++
	for i := range 1024 {
		b.mem.Bytes()[i] = s.round + byte(i*7)
	}
	require.NoError(s.t, b.conn.PostSend(
		hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{b.mem.SGE(0, 1024)}, RemoteAddr: a.mem.Addr() + 2048, RKey: a.mem.RKey()},
		hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{b.mem.SGE(1024, 1024)}, RemoteAddr: a.mem.Addr() + 2048, RKey: a.mem.RKey()},
	))
	var wc [2]hixl.Completion
	got := 0
	s.until("two completions", func() bool {
		n, err := b.cq.Poll(wc[got:])
		require.NoError(s.t, err)
		got += n
		return got == 2
	})
	require.NoError(s.t, wc[0].Err())
	require.NoError(s.t, wc[1].Err())
	if s.net != nil { // else it is the NIC's as long as it runs
		s.unharmed()
	}
	require.True(s.t, bytes.Equal(b.mem.Bytes()[:1024], b.mem.Bytes()[1024:2048]), "what was read")
	require.NoError(s.t, a.conn.Err())
	require.NoError(s.t, b.conn.Err())
}

// unharmed checks every byte of what the strangers may not touch.
func (s *siege) unharmed() {
	want := make([]byte, 4096)
	copy(want[2048:], s.ends[1].mem.Bytes()[:1024])
	require.True(s.t, bytes.Equal(want, s.ends[0].mem.Bytes()), "memory")
}

// send sends a packet to the NIC besieged.
func (s *siege) send(from transport.Conn, p *roce.Packet) {
	to := s.ends[0].nic.Address()
	p.SetPayload(p.Payload)
	b := p.Append(nil)
	h := roce.Headers{Src: from.LocalAddr(), Dst: to, SrcPort: from.SourcePort(0xC123), DstPort: roce.Port, Frag: roce.DontFragment}
	h.Seal(b)
	_, err := from.WriteBatch([]transport.Tx{{Data: b, Dst: to, SrcPort: h.SrcPort}})
	require.NoError(s.t, err)
}

// envelope is a packet to QP1.
func envelope(mad []byte) *roce.Packet {
	return &roce.Packet{
		Opcode: roce.OpUDSendOnly, PKey: 0xFFFF, DestQP: roce.QPNGSI, Payload: mad, DETH: roce.DETH{QKey: 0x80010000, SrcQP: roce.QPNGSI},
	}
}
