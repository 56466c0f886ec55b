package cm_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

func TestConfigErrors(t *testing.T) {
	good := cm.Config{Addr: addr("10.0.0.1"), CAGUID: 1, Rand: func() uint64 { return 1 }}
	_, err := cm.NewAgent(good)
	require.NoError(t, err)
	for name, change := range map[string]func(*cm.Config){
		"Addr":       func(c *cm.Config) { c.Addr = netip.Addr{} },
		"Addr any":   func(c *cm.Config) { c.Addr = addr("0.0.0.0") },
		"CAGUID":     func(c *cm.Config) { c.CAGUID = 0 },
		"Rand":       func(c *cm.Config) { c.Rand = nil },
		"MTU":        func(c *cm.Config) { c.MTU = 6 },
		"MaxReads":   func(c *cm.Config) { c.MaxReads = 129 },
		"ACKDelay":   func(c *cm.Config) { c.ACKDelay = 32 },
		"FirstRetry": func(c *cm.Config) { c.FirstRetry = -1 },
		"limit":      func(c *cm.Config) { c.MaxSIDR = -1 },
	} {
		c := good
		change(&c)
		_, err := cm.NewAgent(c)
		require.ErrorIs(t, err, cm.ErrParam, name)
		var pe *cm.ParamError
		require.ErrorAs(t, err, &pe)
		require.Contains(t, pe.Error(), "allowed: ")
	}
}

func TestConnectErrors(t *testing.T) {
	w := newWorld(t)
	h := w.host("10.0.0.1")
	good := cm.ConnectParams{Peer: addr("10.0.0.2"), Service: service, QPN: 2}
	psn := roce.PSN(1 << 24)
	for name, change := range map[string]func(*cm.ConnectParams){
		"no peer":         func(p *cm.ConnectParams) { p.Peer = netip.Addr{} },
		"multicast":       func(p *cm.ConnectParams) { p.Peer = addr("224.0.0.1") },
		"other family":    func(p *cm.ConnectParams) { p.Peer = addr("fd00::1") },
		"QPN 0":           func(p *cm.ConnectParams) { p.QPN = 0 },
		"QPN 1":           func(p *cm.ConnectParams) { p.QPN = 1 },
		"QPN multicast":   func(p *cm.ConnectParams) { p.QPN = 0xFFFFFF },
		"QPN 25 bits":     func(p *cm.ConnectParams) { p.QPN = 1 << 24 },
		"RD":              func(p *cm.ConnectParams) { p.Transport = cm.RD },
		"MTU":             func(p *cm.ConnectParams) { p.MTU = 6 },
		"MTU above ours":  func(p *cm.ConnectParams) { p.MTU = roce.MTU2048 },
		"datagrams":       func(p *cm.ConnectParams) { p.Service = udp },
		"FlowLabel":       func(p *cm.ConnectParams) { p.FlowLabel = 1 << 20 },
		"StartPSN":        func(p *cm.ConnectParams) { p.StartPSN = &psn },
		"RetryCount":      func(p *cm.ConnectParams) { p.RetryCount = 8 },
		"RNRRetry":        func(p *cm.ConnectParams) { p.RNRRetry = 8 },
		"MinRNRTimer":     func(p *cm.ConnectParams) { p.MinRNRTimer = 32 },
		"CMRetries":       func(p *cm.ConnectParams) { p.CMRetries = 16 },
		"ACKTimeout":      func(p *cm.ConnectParams) { p.ACKTimeout = 32 },
		"ResponseTimeout": func(p *cm.ConnectParams) { p.ResponseTimeout = 32 },
		"MaxRead":         func(p *cm.ConnectParams) { p.MaxRead = 17 },
		"MaxDestRead":     func(p *cm.ConnectParams) { p.MaxDestRead = 17 },
		"Private":         func(p *cm.ConnectParams) { p.Private = make([]byte, 57) },
		"Private, no IP":  func(p *cm.ConnectParams) { p.Service, p.Private = 1, make([]byte, 93) },
	} {
		p := good
		change(&p)
		_, err := h.Connect(w.now, p)
		require.ErrorIs(t, err, cm.ErrParam, name)
	}
	_, err := h.Resolve(w.now, cm.ResolveParams{Peer: addr("10.0.0.2"), Service: service})
	require.ErrorIs(t, err, cm.ErrParam)
	_, err = h.Resolve(w.now, cm.ResolveParams{Peer: addr("10.0.0.2"), Service: udp, Private: make([]byte, 181)})
	require.ErrorIs(t, err, cm.ErrParam)
	_, err = h.Resolve(w.now, cm.ResolveParams{Service: udp})
	require.ErrorIs(t, err, cm.ErrParam)
	h.untouched()
	h.empty()
	_, err = h.Connect(w.now, good)
	require.NoError(t, err)
}

func TestPassiveErrors(t *testing.T) {
	w, client, server := pair(t)
	require.NoError(t, server.Listen(udp))
	require.ErrorIs(t, server.Listen(udp), cm.ErrListening)
	require.EqualError(t, server.Listen(udp), "cm: somebody listens on udp/7174 already: close that listener or take another port")
	l := asked(client, server)
	psn := roce.PSN(1 << 24)
	for name, p := range map[string]cm.AcceptParams{
		"QPN":         {QPN: 1},
		"StartPSN":    {QPN: 2, StartPSN: &psn},
		"Private":     {QPN: 2, Private: make([]byte, 197)},
		"RNRRetry":    {QPN: 2, RNRRetry: 8},
		"MinRNRTimer": {QPN: 2, MinRNRTimer: 32},
		"MaxRead":     {QPN: 2, MaxRead: 17},
		"MaxDestRead": {QPN: 2, MaxDestRead: 17},
	} {
		_, err := server.Prepare(l.sid, p)
		require.ErrorIs(t, err, cm.ErrParam, name)
	}
	require.ErrorIs(t, server.Accept(w.now, l.sid), cm.ErrState, "not prepared")
	require.ErrorIs(t, server.Reject(w.now, l.sid, cm.RejectParams{Info: make([]byte, 73)}), cm.ErrParam)
	require.ErrorIs(t, server.Reject(w.now, l.sid, cm.RejectParams{Private: make([]byte, 149)}), cm.ErrParam)
	server.untouched()
	server.accept(l.sid)
	_, err := server.Prepare(l.sid, cm.AcceptParams{QPN: 2})
	require.ErrorIs(t, err, cm.ErrState)
	require.EqualError(t, err, "cm: Prepare: connection "+l.sid.String()+" is in state REP_SENT")
	require.NoError(t, server.Established(l.sid))
	require.ErrorIs(t, server.Reject(w.now, l.sid, cm.RejectParams{}), cm.ErrState)
	require.ErrorIs(t, server.Disconnect(w.now, l.sid, make([]byte, 221)), cm.ErrParam)
	server.in(l.sid, cm.StateEstablished)
}

// Commands that do not fit the state say so; ids that mean nothing, too.
func TestStateErrors(t *testing.T) {
	w, client, server := pair(t)
	l := asked(client, server)
	require.ErrorIs(t, client.Confirm(l.cid, nil), cm.ErrState)
	require.ErrorIs(t, client.Disconnect(w.now, l.cid, nil), cm.ErrState)
	require.ErrorIs(t, client.Reject(w.now, l.cid, cm.RejectParams{}), cm.ErrState)
	require.ErrorIs(t, client.Established(l.cid), cm.ErrState)
	require.ErrorIs(t, client.Accept(w.now, l.cid), cm.ErrState)
	require.ErrorIs(t, server.Established(l.sid), cm.ErrState)
	require.ErrorIs(t, server.Disconnect(w.now, l.sid, nil), cm.ErrState)
	_, l.rep = server.accept(l.sid)
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	require.ErrorIs(t, client.Confirm(l.cid, make([]byte, 225)), cm.ErrParam)
	client.in(l.cid, cm.StateREPReceived)

	none := cm.CommID(0)
	_, err := server.Prepare(none, cm.AcceptParams{QPN: 5})
	for _, err := range []error{
		err, server.Accept(w.now, none), server.Reject(w.now, none, cm.RejectParams{}), server.Established(none),
		server.Disconnect(w.now, none, nil), server.Confirm(none, nil), server.AnswerSIDR(w.now, none, cm.SIDRAnswer{}),
	} {
		require.ErrorIs(t, err, cm.ErrUnknown)
		require.Contains(t, err.Error(), "00000000")
	}
	_, ok := server.State(none)
	require.False(t, ok)
}

func TestAnswerSIDRErrors(t *testing.T) {
	w, client, server := pair(t)
	require.NoError(t, server.Listen(udp))
	_, req := client.resolve(server)
	server.gets(client, req)
	id := server.happens(cm.EventSIDRRequest).ID
	require.ErrorIs(t, server.AnswerSIDR(w.now, id, cm.SIDRAnswer{}), cm.ErrParam)
	require.ErrorIs(t, server.AnswerSIDR(w.now, id, cm.SIDRAnswer{QPN: 5, Private: make([]byte, 137)}), cm.ErrParam)
	server.untouched()
	require.NoError(t, server.AnswerSIDR(w.now, id, cm.SIDRAnswer{QPN: 5, QKey: 7}))
	require.Equal(t, uint32(7), sends[cm.SIDRREP](server).QKey)
}

// Counters of a handshake with a duplicate.
func TestStats(t *testing.T) {
	_, client, server := pair(t)
	l := confirmed(client, server)
	client.gets(server, l.rep)
	server.gets(client, sends[cm.RTU](client))
	s := client.Stats()
	require.Equal(t, uint64(1), s.Sent[0])
	require.Equal(t, uint64(2), s.Sent[cm.AttrRTU-cm.AttrREQ])
	require.Equal(t, uint64(2), s.Received[cm.AttrREP-cm.AttrREQ])
	require.Equal(t, uint64(1), s.Resent)
	require.Equal(t, uint64(1), s.Duplicates)
	require.Equal(t, cm.Usage{Connections: 1}, client.Usage())
	require.Equal(t, cm.Usage{Connections: 1, Listeners: 1}, server.Usage())
}
