package cm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// replay feeds one side of a recorded conversation to an agent in the place of the
// other side, and compares what it answers. Of what the agent says only its own
// communication ids and transaction ids are not determined by the recording.
type replay struct {
	t    testing.TB
	h    *host
	ours map[cm.CommID]cm.CommID // recorded ids of our side, and what they are now
	tids map[uint64]uint64
}

// expect compares the next message that the agent sends with the recorded one.
func (r *replay) expect(recorded cm.Message) {
	r.t.Helper()
	all := r.h.sent()
	require.NotEmpty(r.t, all, "nothing was sent, recorded: %v", recorded.Attribute())
	require.Len(r.t, all, 1)
	r.adapt(recorded, all[0])
	require.Equal(r.t, recorded.Append(nil), all[0].Append(nil), "%v", recorded.Attribute())
}

// adapt puts what our side is free to choose into the recorded message.
func (r *replay) adapt(recorded, sent cm.Message) {
	own := func(want *cm.CommID, got cm.CommID) {
		if *want == 0 {
			return
		}
		if _, known := r.ours[*want]; !known {
			r.ours[*want] = got
		}
		*want = r.ours[*want]
	}
	tid := func(want *uint64, got uint64) {
		if _, known := r.tids[*want]; !known {
			r.tids[*want] = got
		}
		*want = r.tids[*want]
	}
	switch m := recorded.(type) {
	case *cm.REQ:
		got := sent.(*cm.REQ)
		own(&m.LocalID, got.LocalID)
		tid(&m.TID, got.TID)
	case *cm.REP:
		own(&m.LocalID, sent.(*cm.REP).LocalID)
		tid(&m.TID, m.TID)
	case *cm.RTU:
		own(&m.LocalID, 0)
		tid(&m.TID, m.TID)
	case *cm.REJ:
		own(&m.LocalID, 0)
		tid(&m.TID, m.TID)
	case *cm.DREQ:
		got := sent.(*cm.DREQ)
		own(&m.LocalID, got.LocalID)
		tid(&m.TID, got.TID)
	case *cm.DREP:
		own(&m.LocalID, 0)
		tid(&m.TID, m.TID)
	case *cm.SIDRREQ:
		got := sent.(*cm.SIDRREQ)
		own(&m.RequestID, got.RequestID)
		r.tids[m.TID] = got.TID
		m.TID = got.TID
	case *cm.SIDRREP:
		tid(&m.TID, m.TID)
	}
}

// feed delivers a recorded message, with our present ids in the place of the
// recorded ones.
func (r *replay) feed(p gsi, m cm.Message) {
	current := func(id *cm.CommID) {
		if now, ok := r.ours[*id]; ok {
			*id = now
		}
	}
	var tid *uint64
	switch m := m.(type) {
	case *cm.REQ:
		tid = &m.TID
	case *cm.REP:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.RTU:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.REJ:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.DREQ:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.DREP:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.MRA:
		current(&m.RemoteID)
		tid = &m.TID
	case *cm.SIDRREQ:
		tid = &m.TID
	case *cm.SIDRREP:
		current(&m.RequestID)
		tid = &m.TID
	}
	if now, ok := r.tids[*tid]; ok {
		*tid = now
	}
	r.h.getsFrom(p.src, m)
}

// The applications' parts in the recordings: what rping, ucmatose and perftest give
// to connect and accept, as far as it is not theirs to choose by the message.
func (r *replay) connect(m *cm.REQ) {
	var ip cm.IPHeader
	require.NoError(r.t, ip.Decode(m.Private[:]))
	psn := m.StartPSN
	_, err := r.h.Connect(r.h.w.now, cm.ConnectParams{
		Peer: ip.Dst, Service: m.Service, SrcPort: ip.SrcPort, QPN: m.QPN, StartPSN: &psn,
		MaxRead: orNone(m.InitiatorDepth), MaxDestRead: orNone(m.ResponderResources),
		RetryCount: m.RetryCount, RNRRetry: orNone(m.RNRRetry),
		ACKTimeout: m.Primary.ACKTimeout,
	})
	require.NoError(r.t, err)
}

func (r *replay) resolve(m *cm.SIDRREQ) {
	var ip cm.IPHeader
	require.NoError(r.t, ip.Decode(m.Private[:]))
	_, err := r.h.Resolve(r.h.w.now, cm.ResolveParams{Peer: ip.Dst, Service: m.Service, SrcPort: ip.SrcPort, PKey: m.PKey})
	require.NoError(r.t, err)
}

func (r *replay) accept(m *cm.REP) {
	e := r.h.happens(cm.EventConnectRequest)
	psn := m.StartPSN
	qp, err := r.h.Prepare(e.ID, cm.AcceptParams{
		QPN: m.QPN, StartPSN: &psn, RNRRetry: orNone(m.RNRRetry),
		MaxRead: orNone(m.InitiatorDepth), MaxDestRead: orNone(m.ResponderResources),
	})
	require.NoError(r.t, err)
	require.Equal(r.t, m.StartPSN, qp.RecvPSN)
	require.NoError(r.t, r.h.Accept(r.h.w.now, e.ID))
}

func orNone(v uint8) uint8 {
	if v == 0 {
		return cm.None
	}
	return v
}

// act does what the recorded side's application did to send a message.
func (r *replay) act(m cm.Message) {
	switch m := m.(type) {
	case *cm.REQ:
		r.connect(m)
	case *cm.REP:
		r.accept(m)
	case *cm.RTU:
		e := r.h.happens(cm.EventConnectResponse)
		require.NoError(r.t, r.h.Confirm(e.ID, nil))
	case *cm.DREQ:
		require.NoError(r.t, r.h.Disconnect(r.h.w.now, r.ours[m.LocalID], nil))
	case *cm.SIDRREQ:
		r.resolve(m)
	case *cm.SIDRREP:
		e := r.h.happens(cm.EventSIDRRequest)
		require.NoError(r.t, r.h.AnswerSIDR(r.h.w.now, e.ID, cm.SIDRAnswer{Status: m.Status, QPN: m.QPN, QKey: m.QKey}))
	case *cm.REJ, *cm.DREP: // the agent's own doing
	default:
		r.t.Fatalf("no application sends %v", m.Attribute())
	}
}
