package nic_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

// forge sends a packet from the NIC of host from, as if it were its own.
func forge(t *testing.T, f *nictest.Fabric, from, to int, p *roce.Packet, change func(b []byte, tx *transport.Tx)) {
	t.Helper()
	conn := f.NICs[from].Conn()
	b := p.Append(nil)
	tx := transport.Tx{Data: b, Dst: f.NICs[to].Addr(), SrcPort: 0xC123}
	h := roce.Headers{Src: conn.LocalAddr(), Dst: tx.Dst, SrcPort: tx.SrcPort, DstPort: roce.Port, Frag: roce.DontFragment, ID: tx.ID}
	h.Seal(b)
	if change != nil {
		change(b, &tx)
	}
	_, err := conn.WriteBatch([]transport.Tx{tx})
	require.NoError(t, err)
	f.Net.Advance(f.Net.Now().Add(time.Second))
	f.Settle()
}

// Every reason of §1.13 has its counter, and nothing that is dropped has any
// effect: not on memory, not on the connection.
func TestDrops(t *testing.T) {
	none := func([]byte, *transport.Tx) {}
	tests := []struct {
		drop   nic.Drop
		from   int
		packet func(p *roce.Packet)
		change func(b []byte, tx *transport.Tx)
	}{
		{nic.DropLength, 0, func(p *roce.Packet) {}, func(b []byte, tx *transport.Tx) { tx.Data = b[:15] }},
		{nic.DropLength, 0, func(p *roce.Packet) {}, func(b []byte, tx *transport.Tx) { tx.Data = b[:roce.BTHLen+8] }},
		{nic.DropOpcode, 0, func(p *roce.Packet) {}, func(b []byte, _ *transport.Tx) { b[0] = 0xFF }},
		{nic.DropVersion, 0, func(p *roce.Packet) {}, func(b []byte, _ *transport.Tx) { b[1] |= 1 }},
		{nic.DropNoQP, 0, func(p *roce.Packet) { p.DestQP ^= 1 }, none},
		{nic.DropNoQP, 0, func(p *roce.Packet) { p.DestQP = roce.QPNMulticast }, none},
		{nic.DropTransport, 0, func(p *roce.Packet) { p.Opcode = roce.OpUCSendOnly }, none},
		{nic.DropSource, 2, func(p *roce.Packet) {}, none},
		{nic.DropPKey, 0, func(p *roce.Packet) { p.PKey = 0x8001 }, none},
		{nic.DropPKey, 0, func(p *roce.Packet) { p.PKey = 0 }, none},
		{nic.DropICRC, 0, func(p *roce.Packet) {}, func(b []byte, _ *transport.Tx) { b[len(b)-6] ^= 1 }},
		{nic.DropICRC, 0, func(p *roce.Packet) {}, func(_ []byte, tx *transport.Tx) { tx.ID = 1 }},
		{nic.DropICRC, 0, func(p *roce.Packet) {}, func(_ []byte, tx *transport.Tx) { tx.SrcPort++ }},
	}
	for _, tt := range tests {
		t.Run(tt.drop.String(), func(t *testing.T) {
			f := nictest.New(t, nictest.Config{Hosts: 3})
			a, b := f.Pair(0, 1, nictest.PairConfig{})
			remote := b.Region(64)
			p := roce.Packet{
				Opcode: roce.OpWriteOnly, Mig: true, PKey: qp.DefaultPKey, DestQP: b.QPN(), AckReq: true,
				RETH: roce.RETH{VA: remote.Addr(), RKey: remote.RKey(), Len: 8},
			}
			p.SetPayload(bytes.Repeat([]byte{0xEE}, 8))
			tt.packet(&p)
			forge(t, f, tt.from, 1, &p, tt.change)
			s := b.NIC.Stats()
			require.Equal(t, uint64(1), s.Drops[tt.drop])
			require.Equal(t, uint64(1), s.Dropped())
			require.Zero(t, s.RxPackets)
			require.Zero(t, s.TxPackets, "drops are silent")
			require.Equal(t, make([]byte, 64), remote.Bytes())

			local := a.Region(8)
			copy(local.Bytes(), "12345678")
			a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 8), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
			success(t, f, a, a.Send)
			require.Equal(t, "12345678", string(remote.Bytes()[:8]))
		})
	}
}

// The same packet, unchanged, is taken: the tests above drop for their reason
// alone.
func TestForgedButRight(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2})
	_, b := f.Pair(0, 1, nictest.PairConfig{})
	remote := b.Region(64)
	p := roce.Packet{
		Opcode: roce.OpWriteOnly, PKey: qp.DefaultPKey &^ 0x8000, DestQP: b.QPN(), AckReq: true, Resv6: 63, Resv7: 127, FECN: true,
		RETH: roce.RETH{VA: remote.Addr(), RKey: remote.RKey(), Len: 8},
	}
	p.SetPayload(bytes.Repeat([]byte{0xEE}, 8))
	forge(t, f, 0, 1, &p, nil)
	require.Equal(t, bytes.Repeat([]byte{0xEE}, 8), remote.Bytes()[:8])
}

// A queue pair that is not ready drops silently (§1.13 rule 6); the first request
// in RTR raises COMM_EST.
func TestDropByState(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2})
	cfg := nictest.PairConfig{Unconnected: true, Access: qp.RemoteAccess}
	a, b := f.Pair(0, 1, cfg)
	a.Connect(b, cfg, 0)
	remote := b.Region(8)
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, Inline: []byte("x"), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	f.Run(10 * time.Millisecond)
	require.Equal(t, uint64(1), b.NIC.Stats().Drops[nic.DropState])
	require.NoError(t, b.Modify(&qp.Attr{
		State: qp.RTR, PathMTU: b.NIC.MTU(), DestQPN: a.QPN(), AV: qp.AddressVector{Addr: a.NIC.Addr()},
	}, qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV))
	require.Empty(t, events(b))
	success(t, f, a, a.Send)
	require.Equal(t, []qp.EventType{qp.EventCommEst}, events(b))
}

// Where the socket hides the identification, a peer known to be one of ours may
// only use small ones; a foreign peer any.
func TestHiddenIdentification(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{HideHeaders: true}})
		_, b := f.Pair(0, 1, nictest.PairConfig{ForeignIDs: foreign})
		remote := b.Region(8)
		for _, id := range []uint16{0, 127, 128, 0xABCD} {
			p := roce.Packet{
				Opcode: roce.OpWriteOnly, PKey: qp.DefaultPKey, DestQP: b.QPN(), PSN: roce.PSN(b.NIC.Stats().RxPackets),
				RETH: roce.RETH{VA: remote.Addr(), RKey: remote.RKey(), Len: 2},
			}
			p.SetPayload([]byte{byte(id), byte(id >> 8)})
			forge(t, f, 0, 1, &p, func(b []byte, tx *transport.Tx) {
				h := roce.Headers{Src: f.NICs[0].Addr(), Dst: tx.Dst, SrcPort: tx.SrcPort, DstPort: roce.Port, Frag: roce.DontFragment, ID: id}
				h.Seal(b)
			})
			taken := remote.Bytes()[0] == byte(id) && remote.Bytes()[1] == byte(id>>8)
			require.Equal(t, foreign || id <= 127, taken, "foreign %v, identification %d", foreign, id)
		}
	}
}

// A peer whose every packet fails is reported once, with the likely cause.
func TestRewrittenPackets(t *testing.T) {
	var log bytes.Buffer
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(_ int, c *nic.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	f.Net.SetFilter(func(d *sim.Delivery) sim.Verdict {
		d.Data[len(d.Data)-1] ^= 1
		return sim.Verdict{}
	})
	for range 20 {
		a.Post(qp.SendWR{Op: wr.OpWrite})
	}
	f.Run(time.Second)
	require.Equal(t, uint64(1), b.NIC.Stats().Rewritten)
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("NAT")))
	require.Contains(t, log.String(), a.NIC.Addr().String())
}

// A logger may ask the NIC for its counters, which takes the locks of queue pairs:
// none is held when something is logged, however packets came before.
func TestLoggerMayAskTheNIC(t *testing.T) {
	asks := &asking{Handler: slog.DiscardHandler}
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(_ int, c *nic.Config) { c.Logger = slog.New(asks) }})
	good, _ := f.Pair(0, 1, nictest.PairConfig{})
	bad, b := f.Pair(0, 1, nictest.PairConfig{})
	asks.nic = b.NIC
	f.Net.SetFilter(func(d *sim.Delivery) sim.Verdict {
		var p roce.Packet
		if p.Decode(d.Data) == nil && p.DestQP == b.QPN() {
			d.Data[len(d.Data)-1] ^= 1
		}
		return sim.Verdict{}
	})
	for range 20 {
		good.Post(qp.SendWR{Op: wr.OpWrite})
		bad.Post(qp.SendWR{Op: wr.OpWrite})
	}
	f.Run(time.Second)
	require.Equal(t, 1, asks.answered, "what is logged is logged under a lock that the NIC's counters need")
}

// asking is a log handler that asks a NIC for its counters.
type asking struct {
	slog.Handler
	nic      *nic.NIC
	answered int
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(context.Context, slog.Record) error {
	done := make(chan struct{})
	go func() {
		a.nic.Stats()
		close(done)
	}()
	select {
	case <-done:
		a.answered++
	case <-time.After(time.Minute): // only when it is wrong
	}
	return nil
}

// ICRC checking can be switched off for laboratories (§2.5).
func TestNoICRCCheck(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(_ int, c *nic.Config) { c.NoICRCCheck = true }})
	a, _ := f.Pair(0, 1, nictest.PairConfig{})
	f.Net.SetFilter(func(d *sim.Delivery) sim.Verdict {
		d.Data[len(d.Data)-1] ^= 1
		return sim.Verdict{}
	})
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled})
	success(t, f, a, a.Send)
}

// A CE mark makes the receiver send a CNP, marked as hardware does, and the sender
// count it (§7.2).
func TestCongestionNotification(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Link: sim.Link{Rate: 1e9, MarkBytes: 1, QueueBytes: 1 << 24}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(1<<20), b.Region(1<<20)
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 1<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	success(t, f, a, a.Send)
	require.NotZero(t, f.Net.Counters().Marked)
	require.NotZero(t, b.Stats().CNPsSent)
	require.Equal(t, b.Stats().CNPsSent, a.Stats().CNPsReceived)
}
