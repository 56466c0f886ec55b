package hixl_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
	"github.com/gohixl/hixl/transport/udp"
)

const everything = hixl.LocalWrite | hixl.RemoteWrite | hixl.RemoteRead | hixl.RemoteAtomic

// end is one side of a connection.
type end struct {
	t   *testing.T
	nic *hixl.NIC
	pd  *hixl.PD
	cq  *hixl.CQ
	qp  *hixl.QP
	mem *hixl.Region
}

func newEnd(t *testing.T, cfg hixl.Config, qpc hixl.QPConfig) *end {
	t.Helper()
	e := &end{t: t}
	var err error
	e.nic, err = hixl.OpenNIC(carried(t, cfg))
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.nic.Close() })
	e.pd = e.nic.AllocPD()
	e.cq, err = e.nic.CreateCQ(1024)
	require.NoError(t, err)
	e.mem, err = e.pd.Alloc(1<<20, everything|hixl.RemoteInvalidate)
	require.NoError(t, err)
	qpc.PD, qpc.SendCQ, qpc.RecvCQ = e.pd, e.cq, e.cq
	e.qp, err = e.nic.CreateQP(qpc)
	require.NoError(t, err)
	return e
}

func at(addr string) hixl.Config { return hixl.Config{Address: netip.MustParseAddr(addr)} }

// ackTimeout is for connections in real time, in which a machine may stand still: 1 s.
const ackTimeout = 18

func connect(t *testing.T, a, b *end, o hixl.ConnectOptions) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = ackTimeout
	}
	require.NoError(t, a.qp.Connect(b.qp.Address(), o))
	require.NoError(t, b.qp.Connect(a.qp.Address(), o))
}

// wait takes one completion.
func (e *end) wait() hixl.Completion {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wcs [1]hixl.Completion
	_, err := e.cq.Wait(ctx, wcs[:])
	require.NoError(e.t, err)
	return wcs[0]
}

func (e *end) sge(off uint64, n uint32) []hixl.SGE { return []hixl.SGE{e.mem.SGE(off, n)} }

func TestOperations(t *testing.T) {
	a, b := newEnd(t, at("127.88.20.1"), hixl.QPConfig{SignalAll: true}), newEnd(t, at("127.88.20.2"), hixl.QPConfig{})
	connect(t, a, b, hixl.ConnectOptions{})
	copy(a.mem.Bytes(), "0123456789")
	do := func(wr hixl.SendWR) {
		t.Helper()
		if wr.Op != hixl.OpSend && wr.Op != hixl.OpSendImm && wr.Op != hixl.OpSendInv {
			wr.RemoteAddr, wr.RKey = b.mem.Addr()+64, b.mem.RKey()
		}
		require.NoError(t, a.qp.PostSend(wr))
		require.NoError(t, ptr(a.wait()).Err())
	}
	for range 4 {
		require.NoError(t, b.qp.PostRecv(hixl.RecvWR{SGE: b.sge(1024, 64)}))
	}
	do(hixl.SendWR{Op: hixl.OpWrite, SGE: a.sge(0, 10)})
	require.Equal(t, "0123456789", string(b.mem.Bytes()[64:74]))
	do(hixl.SendWR{Op: hixl.OpRead, SGE: a.sge(100, 10)})
	require.Equal(t, "0123456789", string(a.mem.Bytes()[100:110]))
	do(hixl.SendWR{Op: hixl.OpSend, SGE: a.sge(0, 3)})
	require.Equal(t, uint32(3), ptr(b.wait()).ByteLen)
	do(hixl.SendWR{Op: hixl.OpSendImm, Imm: 7, Inline: []byte("inline")})
	require.Equal(t, uint32(7), ptr(b.wait()).Imm)
	require.Equal(t, "inline", string(b.mem.Bytes()[1024:1030]))
	do(hixl.SendWR{Op: hixl.OpWriteImm, Imm: 8, SGE: a.sge(0, 0)})
	require.Equal(t, uint32(8), ptr(b.wait()).Imm)
	w := hixl.Word(40)
	do(hixl.SendWR{Op: hixl.OpAtomicWrite, Inline: w[:]})
	do(hixl.SendWR{Op: hixl.OpFetchAdd, SwapAdd: 2, SGE: a.sge(200, 8)})
	do(hixl.SendWR{Op: hixl.OpCmpSwap, Compare: 42, SwapAdd: 1, SGE: a.sge(208, 8)})
	require.Equal(t, []uint64{40, 42, 1}, []uint64{
		binary.NativeEndian.Uint64(a.mem.Bytes()[200:]), binary.NativeEndian.Uint64(a.mem.Bytes()[208:]), binary.NativeEndian.Uint64(b.mem.Bytes()[64:]),
	})
	do(hixl.SendWR{Op: hixl.OpSendInv, InvKey: b.mem.RKey()})
	require.Equal(t, b.mem.RKey(), ptr(b.wait()).InvKey)
	require.NoError(t, a.qp.PostSend(hixl.SendWR{Op: hixl.OpWrite, RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey(), SGE: a.sge(0, 1)}))
	require.ErrorIs(t, ptr(a.wait()).Err(), cq.ErrRemoteAccess, "the key is gone")
	require.Equal(t, hixl.StateError, a.qp.State())

	// Both ends start anew with new PSNs.
	old := a.qp.Address()
	require.NoError(t, a.qp.Reset())
	require.NoError(t, b.qp.Reset())
	require.NotEqual(t, old.PSN, a.qp.Address().PSN)
	connect(t, a, b, hixl.ConnectOptions{MTU: 1024})
	fresh, err := b.pd.Register(make([]byte, 5000), everything)
	require.NoError(t, err)
	require.NoError(t, a.qp.PostSend(hixl.SendWR{Op: hixl.OpWrite, RemoteAddr: fresh.Addr(), RKey: fresh.RKey(), SGE: a.sge(0, 5000)}))
	require.NoError(t, ptr(a.wait()).Err())
	require.Equal(t, uint64(5), a.qp.Stats().Requests)
	require.True(t, bytes.Equal(a.mem.Bytes()[:5000], fresh.Bytes()))
	require.NoError(t, fresh.Deregister(context.Background()))
	s := a.nic.Stats()
	require.Zero(t, s.Dropped()-s.Drops[nic.DropState], "%v: a late answer may find a queue pair reset", s.Drops)
}

func ptr[T any](v T) *T { return &v }

func TestOpenErrors(t *testing.T) {
	first, err := hixl.OpenNIC(at("127.88.21.1"))
	require.NoError(t, err)
	defer first.Close()
	_, err = hixl.OpenNIC(at("127.88.21.1"))
	require.ErrorIs(t, err, transport.ErrInUse)
	require.ErrorContains(t, err, "127.88.21.1:4791")
	require.ErrorContains(t, err, "hixl NIC")

	host := func() transport.Conn {
		c, err := sim.New(sim.Config{}).Host(netip.MustParseAddr("10.0.0.1"))
		require.NoError(t, err)
		return c
	}
	var opened transport.Conn
	opener := func(addr netip.Addr) (transport.Conn, error) {
		require.Equal(t, "127.0.0.1", addr.String())
		opened = host()
		return opened, nil
	}
	for _, cfg := range []hixl.Config{
		{Address: netip.MustParseAddr("127.88.21.2"), MaxQPs: -1},
		{Address: netip.MustParseAddr("127.88.21.2"), MaxQPs: 1 << 20},
		{Address: netip.MustParseAddr("127.88.21.2"), MaxRegions: 1 << 20},
		{Address: netip.MustParseAddr("127.88.21.2"), Events: -1},
		{Address: netip.MustParseAddr("127.88.21.2"), Transport: host()},
		{UDP: udp.Config{SourcePorts: 2}, Transport: host()},
		{UDP: udp.Config{SourcePorts: 2}, OpenTransport: opener},
		{Transport: host(), OpenTransport: opener},
		{OpenTransport: opener, MaxQPs: -1},
	} {
		_, err := hixl.OpenNIC(cfg)
		require.ErrorIs(t, err, hixl.ErrConfig)
		require.ErrorContains(t, err, "allowed")
	}
	_, err = opened.WriteBatch(make([]transport.Tx, 1))
	require.ErrorIs(t, err, net.ErrClosed, "what a refused NIC opened is closed")
	failed := errors.New("no such link")
	_, err = hixl.OpenNIC(hixl.Config{OpenTransport: func(netip.Addr) (transport.Conn, error) { return nil, failed }})
	require.ErrorIs(t, err, failed)
	_, err = hixl.OpenNIC(hixl.Config{MTU: 1500})
	require.ErrorContains(t, err, "256, 512, 1024, 2048 or 4096")
	again, err := hixl.OpenNIC(at("127.88.21.2"))
	require.NoError(t, err, "a refused NIC left its address free")
	require.NoError(t, again.Close())
	require.NoError(t, again.Close())
}

func TestCreateErrors(t *testing.T) {
	n, err := hixl.OpenNIC(at("127.88.22.1"))
	require.NoError(t, err)
	defer n.Close()
	other, err := hixl.OpenNIC(at("127.88.22.2"))
	require.NoError(t, err)
	defer other.Close()
	q, err := n.CreateCQ(8)
	require.NoError(t, err)
	pd := n.AllocPD()
	good := hixl.QPConfig{PD: pd, SendCQ: q, RecvCQ: q}
	for field, change := range map[string]func(*hixl.QPConfig){
		"PD":       func(c *hixl.QPConfig) { c.PD = nil },
		"PD ":      func(c *hixl.QPConfig) { c.PD = other.AllocPD() },
		"SendCQ":   func(c *hixl.QPConfig) { c.SendCQ = nil },
		"Access":   func(c *hixl.QPConfig) { c.Access = hixl.LocalWrite },
		"NoRemote": func(c *hixl.QPConfig) { c.NoRemote, c.Access = true, hixl.RemoteRead },
		"MaxReads": func(c *hixl.QPConfig) { c.MaxReads = 129 },
	} {
		cfg := good
		change(&cfg)
		_, err := n.CreateQP(cfg)
		require.ErrorIs(t, err, hixl.ErrConfig, field)
		require.ErrorContains(t, err, "allowed")
	}
	cfg := good
	cfg.MaxInline = 1000
	_, err = n.CreateQP(cfg)
	require.ErrorIs(t, err, qp.ErrConfig)
	_, err = n.CreateCQ(0)
	require.ErrorIs(t, err, cq.ErrCapacity)
	_, err = n.CreateSRQ(nil, hixl.SRQConfig{})
	require.ErrorIs(t, err, hixl.ErrConfig)
	srq, err := n.CreateSRQ(pd, hixl.SRQConfig{})
	require.NoError(t, err)
	require.NoError(t, srq.Close())
	_, err = pd.Register(make([]byte, 8), hixl.RemoteWrite)
	require.ErrorIs(t, err, mr.ErrAccessFlags)
	_, err = pd.Alloc(0, hixl.LocalWrite)
	require.Error(t, err)
}

func TestConnectErrors(t *testing.T) {
	a := newEnd(t, at("127.88.23.1"), hixl.QPConfig{})
	good := hixl.Address{Addr: netip.MustParseAddr("127.88.23.2"), QPN: 77, MTU: 4096, MaxReads: 1}
	for name, change := range map[string]func(*hixl.Address, *hixl.ConnectOptions){
		"no address":     func(r *hixl.Address, _ *hixl.ConnectOptions) { *r = hixl.Address{} },
		"other family":   func(r *hixl.Address, _ *hixl.ConnectOptions) { r.Addr = netip.IPv6Loopback() },
		"MTU no such":    func(_ *hixl.Address, o *hixl.ConnectOptions) { o.MTU = 1500 },
		"MTU of peer":    func(r *hixl.Address, o *hixl.ConnectOptions) { r.MTU, o.MTU = 1024, 2048 },
		"timeout":        func(_ *hixl.Address, o *hixl.ConnectOptions) { o.Timeout = 32 },
		"never time out": func(_ *hixl.Address, o *hixl.ConnectOptions) { o.Timeout = hixl.None },
		"retries":        func(_ *hixl.Address, o *hixl.ConnectOptions) { o.Retries = 8 },
		"RNR retries":    func(_ *hixl.Address, o *hixl.ConnectOptions) { o.RNRRetries = -2 },
		"RNR timer":      func(_ *hixl.Address, o *hixl.ConnectOptions) { o.RNRTimer = 32 },
		"reads":          func(_ *hixl.Address, o *hixl.ConnectOptions) { o.MaxReads = 1000 },
		"window":         func(_ *hixl.Address, o *hixl.ConnectOptions) { o.Window = -5 },
		"flow label":     func(_ *hixl.Address, o *hixl.ConnectOptions) { o.FlowLabel = 1 << 20 },
	} {
		remote, o := good, hixl.ConnectOptions{}
		change(&remote, &o)
		err := a.qp.Connect(remote, o)
		require.Error(t, err, name)
		require.True(t, errors.Is(err, hixl.ErrAddress) || errors.Is(err, hixl.ErrConfig) || errors.Is(err, qp.ErrAttr) ||
			bytes.Contains([]byte(err.Error()), []byte("256, 512")), "%s: %v", name, err)
		require.Equal(t, hixl.StateInit, a.qp.State(), "%s changed something", name)
	}
	require.NoError(t, a.qp.Connect(good, hixl.ConnectOptions{}))
	require.Equal(t, uint8(1), a.qp.Query().MaxRead, "no more than the peer serves")
	require.ErrorIs(t, a.qp.Connect(good, hixl.ConnectOptions{}), hixl.ErrState)
}

// What Close promises: flushed completions, memory and address free, errors
// afterwards.
func TestClose(t *testing.T) {
	a, b := newEnd(t, at("127.88.24.1"), hixl.QPConfig{}), newEnd(t, at("127.88.24.2"), hixl.QPConfig{})
	connect(t, a, b, hixl.ConnectOptions{})
	require.NoError(t, b.qp.PostRecv(hixl.RecvWR{ID: 5}))
	require.NoError(t, b.nic.Close())
	c := b.wait()
	require.Equal(t, uint64(5), c.WRID)
	require.ErrorIs(t, c.Err(), cq.ErrFlushed)
	require.ErrorIs(t, b.qp.PostSend(hixl.SendWR{}), hixl.ErrClosed)
	require.ErrorIs(t, b.qp.PostRecv(hixl.RecvWR{}), hixl.ErrClosed)
	require.ErrorIs(t, b.qp.Modify(&hixl.Attr{}, 0), hixl.ErrClosed)
	require.False(t, b.mem.Valid())
	require.NoError(t, b.qp.Close())
	again, err := hixl.OpenNIC(at("127.88.24.2"))
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// Many connections one after the other leave nothing behind.
func TestConnectLoop(t *testing.T) {
	a, b := newEnd(t, at("127.88.25.1"), hixl.QPConfig{}), newEnd(t, at("127.88.25.2"), hixl.QPConfig{})
	for range 500 {
		for _, e := range []*end{a, b} {
			require.NoError(t, e.qp.Close())
			var err error
			e.qp, err = e.nic.CreateQP(hixl.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq})
			require.NoError(t, err)
		}
		connect(t, a, b, hixl.ConnectOptions{})
		require.NoError(t, a.qp.PostSend(hixl.SendWR{
			Op: hixl.OpWrite, Flags: hixl.Signaled, SGE: a.sge(0, 8), RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey(),
		}))
		require.NoError(t, ptr(a.wait()).Err())
	}
	require.Equal(t, 1, a.nic.Stats().QPs)
}

// A stepped NIC has no goroutines; its owner drives it.
func TestStepped(t *testing.T) {
	net := sim.New(sim.Config{Link: sim.Link{Delay: time.Millisecond}})
	open := func(addr string) *end {
		conn, err := net.Host(netip.MustParseAddr(addr))
		require.NoError(t, err)
		return newEnd(t, hixl.Config{Transport: conn, Clock: net.Now, Stepped: true}, hixl.QPConfig{SignalAll: true})
	}
	a, b := open("10.0.0.1"), open("10.0.0.2")
	connect(t, a, b, hixl.ConnectOptions{})
	require.NoError(t, a.qp.PostSend(hixl.SendWR{Op: hixl.OpWrite, SGE: a.sge(0, 8), RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey()}))
	require.NotZero(t, a.nic.Next(), "the timer runs")
	net.Advance(net.Now().Add(time.Millisecond))
	require.True(t, b.nic.Poll(net.Now()))
	net.Advance(net.Now().Add(time.Millisecond))
	require.True(t, a.nic.Poll(net.Now()))
	require.NoError(t, ptr(a.wait()).Err())
}
