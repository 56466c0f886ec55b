package hostiletest

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport/sim"
)

// over is a context that makes a wait a poll.
func (s *siege) over() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	return ctx, cancel
}

// throw sends one packet that means no good.
func (s *siege) throw() {
	rng := s.rng
	from := pick(rng, s.strangers...)
	var m cm.Message
	switch rng.IntN(9) {
	case 0: // what made the live connection, damaged or not
		mad := s.overheard()
		for range rng.IntN(4) {
			mad[rng.IntN(len(mad))] = byte(rng.Uint32())
		}
		s.send(from, envelope(mad))
		return
	case 1: // about the live connection, right in all but its source
		c, s2 := s.ids()
		m = s.about(c, s2)
	case 2: // from its peer's address, with ids that are not its
		from = s.ends[1].spy.Conn
		c, s2 := s.ids()
		switch rng.IntN(3) {
		case 0:
			m = s.about(c, s2+1+cm.CommID(rng.IntN(9)))
		case 1:
			m = s.about(c+1+cm.CommID(rng.IntN(9)), s2)
		default:
			m = s.about(cm.CommID(rng.Uint32()), cm.CommID(rng.Uint32()))
		}
		if rej, ok := m.(*cm.REJ); ok && rej.Reason == cm.ReasonTimeout {
			rej.ARI[0] ^= 0x55 // not the peer's GUID: with it, this is how a peer gives up (C3)
		}
	case 3, 4:
		m = s.request(from.LocalAddr())
	case 5:
		m = s.question(from.LocalAddr())
	case 6:
		m = &cm.SIDRREP{Header: s.tid(), RequestID: cm.CommID(rng.Uint32()), QPN: roce.QPN(rng.Uint32() & mask24), Service: 0x01110005}
	case 7: // no MAD of connection management, or none at all
		mad := s.request(from.LocalAddr()).Append(nil)
		mad[rng.IntN(4)] ^= byte(1 + rng.IntN(255))
		s.send(from, envelope(mad[:pick(rng, cm.MADLen, cm.MADLen, rng.IntN(cm.MADLen))]))
		return
	default: // a good one in a bad envelope
		p := envelope(s.request(from.LocalAddr()).Append(nil))
		switch rng.IntN(5) {
		case 0:
			p.DETH.QKey = pick(rng, 0, 0x80010001, 0x00010000, rng.Uint32())
		case 1:
			p.Opcode = pick(rng, roce.OpSendOnly, roce.OpWriteOnly, roce.OpUDSendOnlyImm)
		case 2:
			p.PKey = 0x1234
		case 3:
			p.DETH.SrcQP = roce.QPN(2 + rng.IntN(1000))
		default:
			p.Payload = append(p.Payload, s.bytes(1+rng.IntN(700))...)
		}
		s.send(from, p)
		return
	}
	s.send(from, envelope(m.Append(nil)))
}

func (s *siege) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return b
}

func (s *siege) tid() cm.Header { return cm.Header{TID: s.rng.Uint64()} }

// overheard is one of the messages that made the live connection.
func (s *siege) overheard() []byte {
	e := s.ends[s.rng.IntN(2)]
	e.spy.mu.Lock()
	defer e.spy.mu.Unlock()
	return append([]byte(nil), e.spy.mads[s.rng.IntN(min(2, len(e.spy.mads)))]...)
}

// ids are those of the live connection: its client's, which is honest, and its
// server's.
func (s *siege) ids() (client, server cm.CommID) {
	e := s.ends[0]
	e.spy.mu.Lock()
	defer e.spy.mu.Unlock()
	var rep cm.REP
	require.NoError(s.t, rep.Decode(e.spy.mads[0]))
	return rep.RemoteID, rep.LocalID
}

// about is any message about a connection with the ids of its sender and of the
// NIC besieged.
func (s *siege) about(sender, own cm.CommID) cm.Message {
	rng, h, qpn := s.rng, s.tid(), s.ends[0].conn.QPN()
	switch rng.IntN(8) {
	case 0:
		return &cm.DREQ{Header: h, LocalID: sender, RemoteID: own, QPN: qpn}
	case 1:
		return &cm.DREP{Header: h, LocalID: sender, RemoteID: own}
	case 2:
		return &cm.RTU{Header: h, LocalID: sender, RemoteID: own}
	case 3:
		return &cm.REP{Header: h, LocalID: sender, RemoteID: own, QPN: s.ends[1].conn.QPN(), CAGUID: s.guid()}
	case 4:
		return &cm.MRA{Header: h, LocalID: sender, RemoteID: own, Answered: cm.Answered(rng.IntN(4)), ServiceTimeout: 31}
	case 5:
		return &cm.LAP{Header: h, LocalID: sender, RemoteID: own, QPN: qpn}
	}
	m := &cm.REJ{
		Header: h, LocalID: sender, RemoteID: own, Rejected: cm.Answered(rng.IntN(3)),
		Reason: pick(rng, cm.ReasonConsumer, cm.ReasonStale, cm.ReasonTimeout, cm.ReasonServiceID), InfoLen: 8,
	}
	if rng.IntN(2) == 0 {
		m.RemoteID = 0
	}
	binary.BigEndian.PutUint64(m.ARI[:], s.guid())
	return m
}

// guid is the honest NIC's.
func (s *siege) guid() uint64 {
	e := s.ends[1]
	e.spy.mu.Lock()
	defer e.spy.mu.Unlock()
	var req cm.REQ
	require.NoError(s.t, req.Decode(e.spy.mads[0]))
	return req.CAGUID
}

// request asks for another connection, mostly where somebody listens.
func (s *siege) request(from netip.Addr) *cm.REQ {
	rng, to := s.rng, s.ends[0].nic.Address()
	m := &cm.REQ{
		Header: s.tid(), LocalID: cm.CommID(rng.Uint32()), Service: cm.PortSpaceTCP.Service(pick[uint16](rng, 5, 5, 5, 6)),
		CAGUID: rng.Uint64(), QPN: roce.QPN(2 + rng.IntN(1<<20)), MTU: roce.MTU1024, PKey: 0xFFFF,
		RemoteTimeout: uint8(rng.IntN(32)), LocalTimeout: uint8(rng.IntN(32)), MaxCMRetries: uint8(rng.IntN(16)),
		Primary: cm.Path{LocalGID: cm.GIDOf(from), RemoteGID: cm.GIDOf(to), ACKTimeout: uint8(rng.IntN(32)), FlowLabel: rng.Uint32() & 0xFFFFF},
	}
	if rng.IntN(10) == 0 { // as if the live connection were stale
		m.CAGUID, m.QPN = s.guid(), s.ends[1].conn.QPN()
	}
	ip := cm.IPHeader{SrcPort: uint16(rng.Uint32()), Src: from, Dst: to}
	ip.Append(m.Private[:0])
	return m
}

func (s *siege) question(from netip.Addr) *cm.SIDRREQ {
	m := &cm.SIDRREQ{Header: s.tid(), RequestID: cm.CommID(s.rng.Uint32()), Service: cm.PortSpaceUDP.Service(pick[uint16](s.rng, 5, 5, 6))}
	ip := cm.IPHeader{SrcPort: 1, Src: from, Dst: s.ends[0].nic.Address()}
	ip.Append(m.Private[:0])
	return m
}

// bounded checks what the NIC holds.
func (s *siege) bounded() {
	u := s.ends[0].nic.ConnStats()
	require.LessOrEqual(s.t, u.HalfOpen, siegeBacklog+64, "requests that wait, and what 64 queue pairs can have accepted")
	require.LessOrEqual(s.t, u.Connections, 64+siegeBacklog+u.Timewait)
	require.LessOrEqual(s.t, u.SIDR, cm.DefaultMaxSIDR)
	require.LessOrEqual(s.t, s.ends[0].nic.Stats().QPs, 64)
	require.NoError(s.t, s.ends[0].conn.Err())
}

// assault throws packets while the connection is used; the application accepts
// some of the requests, which nobody ever confirms.
func (s *siege) assault(packets int) {
	for i := range packets {
		s.throw()
		if i%16 == 0 {
			s.settle()
		}
		if i%500 == 0 {
			s.exchange()
			s.bounded()
			ctx, cancel := s.over()
			if r, err := s.listener.AcceptRequest(ctx); err == nil {
				_, _ = r.Accept(hixl.AcceptOptions{QPConfig: s.ends[0].cfg}) // refused when there are no queue pairs left
			}
			cancel()
		}
	}
	s.settle()
	s.exchange()
	s.bounded()
}

// relieved checks that who comes afterwards is served.
func (s *siege) relieved() {
	c, a := s.dial()
	require.NoError(s.t, c.Close())
	s.until("the end", func() bool {
		select {
		case <-a.Done():
			return true
		default:
			return false
		}
	})
	require.NoError(s.t, a.Close())
	s.exchange()
}

// TestSiege throws malformed MADs, MADs in wrong envelopes, messages about others'
// connections, and floods of requests from many sources at QP1. The live connection
// stays and no byte changes, what the NIC holds is bounded and in the end gone, and
// it says no more than it is asked.
func TestSiege(t *testing.T) {
	packets, baseline := 50_000, uint64(0)
	if defaultPackets < 1_000_000 {
		packets = 5_000
	}
	for seed := range uint64(3) {
		net := sim.New(sim.Config{Seed: seed, Link: sim.Link{Delay: time.Microsecond}, HideHeaders: seed == 1})
		s := newSiege(t, seed, net, 60, func(i int) netip.Addr {
			if seed == 2 {
				return netip.AddrFrom16([16]byte{0xFD, 15: byte(i + 1)})
			}
			return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		})
		s.assault(packets / 3)
		st := s.ends[0].nic.ConnStats()
		received, sent := uint64(0), uint64(0)
		for i := range st.Sent {
			received, sent = received+st.Received[i], sent+st.Sent[i]
		}
		require.Greater(t, received, uint64(packets/6))
		require.LessOrEqual(t, sent-st.Resent, received, "one answer to a message at most")
		s.relieved()
		s.pass(15 * time.Minute)
		st = s.ends[0].nic.ConnStats()
		require.Equal(t, cm.Usage{Connections: 1, Listeners: 2}, st.Usage, "nothing is left of it")
		require.Equal(t, 1, st.HeldQPNs)
		s.relieved()
		require.NoError(t, s.ends[0].nic.Close())
		require.NoError(t, s.ends[1].nic.Close())
		require.NoError(t, net.Close())
		if heap := liveHeap(); baseline == 0 {
			baseline = heap
		} else {
			require.Less(t, heap, baseline+16<<20)
		}
	}
}

// The same over real sockets, on NICs that run by themselves.
func TestSiegeSockets(t *testing.T) {
	packets := 20_000
	if defaultPackets < 1_000_000 {
		packets = 3_000
	}
	s := newSiege(t, 7, nil, 8, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 91, 2, byte(i + 1)}) })
	s.assault(packets)
	require.NotZero(t, s.ends[0].nic.ConnStats().Refused)
	s.relieved()
	require.NoError(t, s.ends[0].nic.Close())
	s.unharmed()
}

// §5.2, §5.3: what is no MAD of exactly 256 bytes from a QP1, with its Q_Key, is
// nothing to connection management, and is not answered.
func TestEnvelopes(t *testing.T) {
	net := sim.New(sim.Config{Link: sim.Link{Delay: time.Microsecond}})
	s := newSiege(t, 1, net, 1, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) })
	from := s.strangers[0]
	for name, c := range map[string]struct {
		change   func(p *roce.Packet)
		answered bool
	}{
		"right":              {func(*roce.Packet) {}, true},
		"A is set, as rxe's": {func(p *roce.Packet) { p.AckReq = true }, true},
		"any PSN":            {func(p *roce.Packet) { p.PSN = 0xABCDEF }, true},
		"Q_Key":              {func(p *roce.Packet) { p.DETH.QKey = 0x80010001 }, false},
		"Q_Key of datagrams": {func(p *roce.Packet) { p.DETH.QKey = hixl.DefaultQKey }, false},
		"source QP":          {func(p *roce.Packet) { p.DETH.SrcQP = 17 }, false},
		"reliable":           {func(p *roce.Packet) { p.Opcode = roce.OpSendOnly }, false},
		"P_Key":              {func(p *roce.Packet) { p.PKey = 0x0001 }, false},
		"short":              {func(p *roce.Packet) { p.Payload = p.Payload[:255] }, false},
		"long":               {func(p *roce.Packet) { p.Payload = append(p.Payload, 0) }, false},
		"empty":              {func(p *roce.Packet) { p.Payload = nil }, false},
		"base version":       {func(p *roce.Packet) { p.Payload[0] = 2 }, false},
		"class":              {func(p *roce.Packet) { p.Payload[1] = 3 }, false},
		"class version":      {func(p *roce.Packet) { p.Payload[2] = 1 }, false},
		"method":             {func(p *roce.Packet) { p.Payload[3] = 1 }, false},
		"attribute":          {func(p *roce.Packet) { p.Payload[17] = 0x1B }, false},
	} {
		req := s.request(from.LocalAddr())
		req.Service, req.CAGUID = cm.PortSpaceTCP.Service(6), 9 // nobody listens: refused
		p := envelope(req.Append(nil))
		c.change(p)
		s.send(from, p)
		s.settle()
		s.net.Advance(net.Now().Add(10 * time.Microsecond))
		for _, e := range s.ends {
			e.nic.Poll(net.Now())
		}
		s.net.Advance(net.Now().Add(10 * time.Microsecond))
		n, err := from.ReadBatch(s.rx, false)
		require.NoError(t, err)
		require.Equal(t, c.answered, n == 1, name)
	}
}
