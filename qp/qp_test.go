package qp_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

func two(t *testing.T) *nictest.Fabric {
	return nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: 10 * time.Microsecond}}})
}

func sges(r *mr.Region, n int) []mr.SGE { return []mr.SGE{r.SGE(0, uint32(n))} }

func write(b *mr.Region) qp.SendWR {
	return qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, RemoteAddr: b.Addr(), RKey: b.RKey()}
}

func nextEvent(t *testing.T, e *nictest.End) qp.Event {
	t.Helper()
	select {
	case ev := <-e.NIC.Events():
		return ev
	default:
		require.Fail(t, "no event")
		return qp.Event{}
	}
}

func TestRanges(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{Unconnected: true})
	good := func() *qp.Attr {
		return &qp.Attr{
			State: qp.RTR, PathMTU: a.NIC.MTU(), DestQPN: b.QPN(), RecvPSN: 0xFFFFFF, MaxDestRead: qp.MaxReads, MinRNRTimer: 31,
			AV: qp.AddressVector{Addr: b.NIC.Addr(), FlowLabel: 0xFFFFF}, Access: qp.RemoteAccess,
		}
	}
	const mask = qp.MaskState | qp.MaskPathMTU | qp.MaskDestQPN | qp.MaskRecvPSN | qp.MaskMaxDestRead | qp.MaskMinRNRTimer | qp.MaskAV
	tests := []struct {
		attr   qp.AttrMask
		change func(*qp.Attr)
	}{
		{qp.MaskPathMTU, func(a *qp.Attr) { a.PathMTU = 0 }},
		{qp.MaskPathMTU, func(a *qp.Attr) { a.PathMTU = 6 }},
		{qp.MaskDestQPN, func(a *qp.Attr) { a.DestQPN = 0 }},
		{qp.MaskDestQPN, func(a *qp.Attr) { a.DestQPN = 1 << 24 }},
		{qp.MaskRecvPSN, func(a *qp.Attr) { a.RecvPSN = 1 << 24 }},
		{qp.MaskMaxDestRead, func(a *qp.Attr) { a.MaxDestRead = qp.MaxReads + 1 }},
		{qp.MaskMinRNRTimer, func(a *qp.Attr) { a.MinRNRTimer = 32 }},
		{qp.MaskAV, func(a *qp.Attr) { a.AV.Addr = nictest.Addr(1, true) }},
		{qp.MaskAV, func(a *qp.Attr) { a.AV = qp.AddressVector{} }},
		{qp.MaskAV, func(a *qp.Attr) { a.AV.Addr = netip.MustParseAddr("255.255.255.255") }},
		{qp.MaskAV, func(a *qp.Attr) { a.AV.FlowLabel = 1 << 20 }},
		{qp.MaskAccess, func(a *qp.Attr) { a.Access = mr.LocalWrite }},
		{qp.MaskPKeyIndex, func(a *qp.Attr) { a.PKeyIndex = 1 }},
		{qp.MaskAltPath, func(*qp.Attr) {}},
	}
	for _, tt := range tests {
		attr := good()
		tt.change(attr)
		err := a.Modify(attr, mask|tt.attr)
		var bad *qp.AttrError
		require.True(t, errors.As(err, &bad), "%v: %v", tt.attr, err)
		require.Equal(t, tt.attr, bad.Attr)
		require.ErrorIs(t, err, qp.ErrAttr)
		require.ErrorContains(t, err, tt.attr.String()+" is")
		require.Equal(t, qp.Init, a.State(), "nothing changes")
	}
	require.NoError(t, a.Modify(good(), mask))
	rts := qp.Attr{State: qp.RTS, CurState: qp.RTR}
	const rtsMask = qp.MaskState | qp.MaskTimeout | qp.MaskRetryCount | qp.MaskRNRRetry | qp.MaskSendPSN | qp.MaskMaxRead | qp.MaskCurState
	for _, change := range []func(*qp.Attr){
		func(a *qp.Attr) { a.Timeout = 32 }, func(a *qp.Attr) { a.RetryCount = 8 }, func(a *qp.Attr) { a.RNRRetry = 8 },
		func(a *qp.Attr) { a.SendPSN = 1 << 24 }, func(a *qp.Attr) { a.MaxRead = 129 }, func(a *qp.Attr) { a.CurState = qp.RTS },
	} {
		attr := rts
		change(&attr)
		require.ErrorIs(t, a.Modify(&attr, rtsMask), qp.ErrAttr)
	}
	require.NoError(t, a.Modify(&rts, rtsMask))
	got := a.Query()
	require.Equal(t, qp.RTS, got.State)
	require.Equal(t, good().AV, got.AV)
}

// What may be posted in which state (§3.18).
func TestPostByState(t *testing.T) {
	f := two(t)
	cfg := nictest.PairConfig{Unconnected: true, Access: qp.RemoteAccess}
	a, b := f.Pair(0, 1, cfg)
	require.NoError(t, a.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	check := func(state qp.State, send, recv bool) {
		t.Helper()
		require.Equal(t, state, a.State())
		for _, err := range []struct {
			ok  bool
			err error
		}{{send, a.PostSend([]qp.SendWR{{Op: wr.OpWrite}})}, {recv, a.PostRecv([]qp.RecvWR{{}})}} {
			if err.ok {
				require.NoError(t, err.err)
				continue
			}
			var bad *qp.StateError
			require.True(t, errors.As(err.err, &bad), "%v", err.err)
			require.Equal(t, state, bad.State)
			require.ErrorContains(t, err.err, state.String())
		}
	}
	check(qp.Reset, false, false)
	a.ToInit(cfg)
	check(qp.Init, false, true)
	require.NoError(t, a.Modify(&qp.Attr{Port: 1}, qp.MaskPort), "INIT to INIT (C8)")
	require.NoError(t, a.Modify(&qp.Attr{
		State: qp.RTR, PathMTU: a.NIC.MTU(), DestQPN: b.QPN(), AV: qp.AddressVector{Addr: b.NIC.Addr()},
	}, qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV))
	check(qp.RTR, false, true)
	require.NoError(t, a.Modify(&qp.Attr{State: qp.RTS},
		qp.MaskState|qp.MaskTimeout|qp.MaskRetryCount|qp.MaskRNRRetry|qp.MaskSendPSN|qp.MaskMaxRead))
	check(qp.RTS, true, true)
	require.NoError(t, a.Modify(&qp.Attr{State: qp.SQD}, qp.MaskState))
	check(qp.SQD, true, true)
	require.NoError(t, a.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	check(qp.Err, true, true)
	require.ErrorIs(t, a.PostSend([]qp.SendWR{{Op: wr.OpWrite}, {Op: 77}}), qp.ErrWorkRequest)
	a.Close()
	check(qp.Reset, false, false)
	require.ErrorIs(t, a.Modify(&qp.Attr{State: qp.Init}, qp.MaskState), qp.ErrState)
	a.Close()
}

// A queue pair that was never connected flushes too.
func TestFlushUnconnected(t *testing.T) {
	f := two(t)
	a, _ := f.Pair(0, 1, nictest.PairConfig{Unconnected: true})
	a.Receive(qp.RecvWR{ID: 1}, qp.RecvWR{ID: 2})
	require.NoError(t, a.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	a.Post(qp.SendWR{ID: 3})
	got := append(a.Take(a.Recv), a.Take(a.Send)...)
	require.Len(t, got, 3)
	for i, c := range got {
		require.Equal(t, uint64(i+1), c.WRID)
		require.ErrorIs(t, c.Err(), cq.ErrFlushed)
	}
}

// SQD (§3.17): what was begun is finished, nothing new starts, the event comes
// when all is done; attributes may change then and not before; RTS goes on.
func TestSQD(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(1<<20), b.Region(1<<20)
	req := write(remote)
	req.SGE = sges(local, 1<<20)
	a.Post(req)
	require.NoError(t, a.Modify(&qp.Attr{State: qp.SQD, SQDNotify: true}, qp.MaskState|qp.MaskSQDNotify))
	a.Post(req)
	require.Empty(t, a.NIC.Events())
	var early *qp.StateError
	err := a.Modify(&qp.Attr{Timeout: 10}, qp.MaskTimeout)
	require.True(t, errors.As(err, &early), "%v", err)
	require.ErrorContains(t, err, "drained")
	f.Run(time.Second)
	require.Len(t, a.Take(a.Send), 1, "the second does not start")
	ev := nextEvent(t, a)
	require.Equal(t, qp.Event{Type: qp.EventSQDrained, QPN: a.QPN()}, ev)
	require.Empty(t, a.NIC.Events())

	require.NoError(t, a.Modify(&qp.Attr{Timeout: 10, RetryCount: 1, MaxRead: 3}, qp.MaskTimeout|qp.MaskRetryCount|qp.MaskMaxRead))
	require.Equal(t, uint8(10), a.Query().Timeout)
	require.ErrorIs(t, a.Modify(&qp.Attr{MaxDestRead: 3}, qp.MaskMaxDestRead), qp.ErrAttr)
	// The responder keeps running.
	b.Post(write(local))
	f.RunUntil(time.Second, func() bool { return b.Send.Len() == 1 })

	require.NoError(t, a.Modify(&qp.Attr{State: qp.RTS}, qp.MaskState))
	f.RunUntil(time.Second, func() bool { return a.Send.Len() == 1 })
}

// Many queue pairs take from one receive queue in the order of arrival; it tells
// when it runs low; the error of one queue pair flushes nothing of it.
func TestSharedReceiveQueue(t *testing.T) {
	f := two(t)
	pd := f.NICs[1].AllocPD()
	srq, err := qp.NewSRQ(qp.SRQConfig{PD: pd, MaxWR: 8, MaxSGE: 1, Events: f.NICs[1].EventQueue()})
	require.NoError(t, err)
	type link struct{ a, b *nictest.End }
	var links []link
	for range 3 {
		a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{SRQ: srq}, PDs: [2]*mr.PD{f.NICs[0].AllocPD(), pd}})
		links = append(links, link{a, b})
	}
	b0 := links[0].b
	remote := b0.Region(8 * 64)
	for i := range uint64(8) {
		require.NoError(t, srq.Post(qp.RecvWR{ID: i, SGE: []mr.SGE{remote.SGE(64*i, 64)}}))
	}
	require.ErrorIs(t, srq.Post(qp.RecvWR{}), qp.ErrRecvQueueFull)
	require.ErrorIs(t, b0.PostRecv([]qp.RecvWR{{}}), qp.ErrShared)
	require.NoError(t, srq.Arm(6))
	require.ErrorIs(t, srq.Arm(9), qp.ErrConfig)
	for i := range 6 {
		l := links[i%3]
		l.a.Post(qp.SendWR{Op: wr.OpSend, Flags: wr.Signaled, Inline: []byte{byte(i)}})
		f.RunUntil(time.Second, func() bool { return l.b.Recv.Len() == 1 })
		c := l.b.Take(l.b.Recv)[0]
		require.NoError(t, c.Err())
		require.Equal(t, uint64(i), c.WRID)
		require.Equal(t, l.b.QPN(), c.QPN)
		require.Equal(t, byte(i), remote.Bytes()[64*i])
	}
	ev := nextEvent(t, b0)
	require.Equal(t, qp.Event{Type: qp.EventSRQLimit, SRQ: srq}, ev, "once, when 5 were left")
	require.Empty(t, b0.NIC.Events())

	require.NoError(t, b0.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	require.Equal(t, qp.Event{Type: qp.EventLastWQE, QPN: b0.QPN()}, nextEvent(t, b0))
	require.Empty(t, b0.Take(b0.Recv))
	require.Equal(t, 2, srq.Len())

	require.ErrorIs(t, srq.Close(), qp.ErrBusy)
	for _, l := range links {
		l.b.Close()
	}
	require.NoError(t, srq.Close())
	require.NoError(t, srq.Close())
	require.ErrorIs(t, srq.Post(qp.RecvWR{}), qp.ErrState)
	require.NoError(t, remote.Deregister(t.Context()))
	require.NoError(t, pd.Dealloc(), "nobody is left in the domain")
}

// A protection domain stays while queue pairs live in it.
func TestPDInUse(t *testing.T) {
	f := two(t)
	a, _ := f.Pair(0, 1, nictest.PairConfig{})
	require.ErrorIs(t, a.PD.Dealloc(), mr.ErrBusy)
	a.Close()
	require.NoError(t, a.PD.Dealloc())
}

func TestConfigErrors(t *testing.T) {
	f := two(t)
	n := f.NICs[0]
	pd, sink := n.AllocPD(), func() *cq.Queue { q, _ := cq.New(1); return q }()
	base := qp.Config{PD: pd, SendSink: sink, RecvSink: sink}
	for name, change := range map[string]func(*qp.Config){
		"Type":       func(c *qp.Config) { c.Type = 9 },
		"PD":         func(c *qp.Config) { c.PD = nil },
		"SendSink":   func(c *qp.Config) { c.SendSink = nil },
		"MaxSendWR":  func(c *qp.Config) { c.MaxSendWR = qp.MaxWR + 1 },
		"MaxRecvWR":  func(c *qp.Config) { c.MaxRecvWR = -1 },
		"MaxSendSGE": func(c *qp.Config) { c.MaxSendSGE = qp.MaxSGE + 1 },
		"MaxInline":  func(c *qp.Config) { c.MaxInline = 257 },
	} {
		cfg := base
		change(&cfg)
		_, err := n.CreateQP(cfg)
		var bad *qp.ConfigError
		require.True(t, errors.As(err, &bad), "%s: %v", name, err)
		require.Contains(t, bad.Field, name)
		require.NotEmpty(t, bad.Allowed)
	}
	for _, c := range []qp.SRQConfig{{}, {PD: pd, MaxWR: -1}, {PD: pd, MaxSGE: 33}} {
		_, err := qp.NewSRQ(c)
		require.ErrorIs(t, err, qp.ErrConfig)
	}
	require.Zero(t, n.Stats().QPs)
	require.NoError(t, pd.Dealloc())
	_, err := n.CreateQP(base)
	require.ErrorIs(t, err, mr.ErrPDClosed)
	_, err = qp.NewSRQ(qp.SRQConfig{PD: pd})
	require.ErrorIs(t, err, mr.ErrPDClosed)
}

// Events that nobody takes are dropped and counted, and block nobody.
func TestEventsOverflow(t *testing.T) {
	f := two(t)
	pd := f.NICs[0].AllocPD()
	for range 300 {
		srq, err := qp.NewSRQ(qp.SRQConfig{PD: pd, Events: f.NICs[0].EventQueue()})
		require.NoError(t, err)
		require.NoError(t, srq.Post(qp.RecvWR{}))
		require.NoError(t, srq.Arm(1))
		require.True(t, srq.Take(&wr.Receive{}))
		require.False(t, srq.Take(&wr.Receive{}))
	}
	require.Equal(t, uint64(300-256), f.NICs[0].Stats().EventsLost)
}

// Gathered inline data and a receive with empty entries.
func TestInlineGather(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(300), b.Region(300)
	for i := range local.Bytes() {
		local.Bytes()[i] = byte(i)
	}
	b.Receive(qp.RecvWR{SGE: []mr.SGE{{}, remote.SGE(0, 100), {LKey: 99}, remote.SGE(100, 200)}})
	a.Post(qp.SendWR{Op: wr.OpSend, Flags: wr.Inline | wr.Signaled, SGE: []mr.SGE{local.SGE(1, 99), local.SGE(200, 0), local.SGE(100, 100)}})
	clear(local.Bytes())
	f.RunUntil(time.Second, func() bool { return b.Recv.Len() == 1 })
	require.Equal(t, uint32(199), b.Take(b.Recv)[0].ByteLen)
	for i := range 199 {
		require.Equal(t, byte(i+1), remote.Bytes()[i])
	}
	err := a.PostSend([]qp.SendWR{{Op: wr.OpSend, Flags: wr.Inline, SGE: []mr.SGE{local.SGE(0, 200), local.SGE(0, 57)}}})
	require.ErrorIs(t, err, qp.ErrWorkRequest)
	require.ErrorContains(t, err, "257 bytes of inline data")
}

func TestNames(t *testing.T) {
	require.Equal(t, "SQD", qp.SQD.String())
	require.Equal(t, "state 9", qp.State(9).String())
	require.Equal(t, "GSI", qp.GSI.String())
	require.Equal(t, "COMM_EST", qp.EventCommEst.String())
	require.Equal(t, "event 99", qp.EventType(99).String())
}
