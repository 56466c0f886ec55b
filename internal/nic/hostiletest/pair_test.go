package hostiletest

import (
	"bytes"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// pair is a connection between the NIC under test and an honest one, which must
// keep working whatever is thrown at the NIC, and at this very connection.
type pair struct {
	w     *world
	ends  [2]pairEnd // of the NIC under test, of the honest one
	model *conn      // as much of it as §1.13 asks for
	// expects is the PSN that the NIC under test expects, starts what it sends.
	expects uint32
	round   byte
}

type pairEnd struct {
	q            *nic.Queue
	sends, recvs sink
	r            *mr.Region
	b            []byte
}

const pairBytes = 16 << 10

func (w *world) openHonest() {
	conn := w.link.open(w.link.addr(hostHonest))
	n, err := nic.Open(nic.Config{Conn: conn, Clock: w.link.now, MaxQPs: 64, MaxRegions: 64})
	require.NoError(w.t, err)
	w.honest = n
	w.hosts[hostHonest] = &hostAt{conn: conn, addr: w.link.addr(hostHonest)}
}

func (w *world) newPair() *pair {
	p := &pair{w: w}
	for i, n := range []*nic.NIC{w.nic, w.honest} {
		e := &p.ends[i]
		pd := n.AllocPD()
		e.b = make([]byte, pairBytes)
		var err error
		e.r, err = pd.Register(host.New(e.b), mr.Options{Access: everyone})
		require.NoError(w.t, err)
		e.q, err = n.CreateQP(qp.Config{PD: pd, SendSink: &e.sends, RecvSink: &e.recvs})
		require.NoError(w.t, err)
	}
	psn := [2]roce.PSN{0x654321, 0xFFFFFD}
	for i := range p.ends {
		e, other := &p.ends[i], &p.ends[1-i]
		modify := func(a qp.Attr, mask qp.AttrMask) { require.NoError(w.t, e.q.Modify(&a, mask|qp.MaskState)) }
		modify(qp.Attr{State: qp.Init, Port: 1, Access: qp.RemoteAccess}, qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess)
		modify(qp.Attr{
			State: qp.RTR, PathMTU: roce.MTU1024, DestQPN: other.q.QPN(), RecvPSN: psn[1-i], MaxDestRead: 4, MinRNRTimer: 1,
			AV: qp.AddressVector{Addr: w.link.addr(1 - i), SmallIDs: true},
		}, qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV)
		modify(qp.Attr{State: qp.RTS, SendPSN: psn[i], Timeout: 14, RetryCount: 7, RNRRetry: 7, MaxRead: 4},
			qp.MaskSendPSN|qp.MaskTimeout|qp.MaskRetryCount|qp.MaskRNRRetry|qp.MaskMaxRead)
	}
	p.model = &conn{w: w, q: p.ends[0].q, qpn: uint32(p.ends[0].q.QPN()), peer: hostHonest, state: qp.RTS, mtu: 1024}
	p.expects = uint32(psn[1])
	return p
}

// liveConn is the modelled part of the live connection, if that is its number.
func (w *world) liveConn(qpn uint32) *conn {
	if w.live != nil && w.live.model.qpn == qpn {
		return w.live.model
	}
	return nil
}

// exercise moves bytes in every way and both directions.
func (p *pair) exercise() {
	w, a, b := p.w, &p.ends[0], &p.ends[1]
	p.round++
	for i := range b.b[:3000] {
		b.b[i] = byte(i)*7 + p.round
	}
	copy(a.b[8000:8008], make([]byte, 8))
	require.NoError(w.t, b.q.PostRecv([]qp.RecvWR{{ID: 9, SGE: []mr.SGE{b.r.SGE(12000, 2000)}}}))
	require.NoError(w.t, b.q.PostSend([]qp.SendWR{
		{ID: 1, Op: wr.OpWrite, SGE: []mr.SGE{b.r.SGE(0, 3000)}, RemoteAddr: a.r.Addr() + 100, RKey: a.r.RKey()},
		{ID: 2, Op: wr.OpRead, SGE: []mr.SGE{b.r.SGE(4000, 3000)}, RemoteAddr: a.r.Addr() + 100, RKey: a.r.RKey()},
		{ID: 3, Op: wr.OpFetchAdd, Flags: wr.Signaled, SGE: []mr.SGE{b.r.SGE(8000, 8)}, RemoteAddr: a.r.Addr() + 8000, RKey: a.r.RKey(), SwapAdd: 5},
	}))
	w.poll()
	require.NoError(w.t, a.q.PostSend([]qp.SendWR{{ID: 4, Op: wr.OpSend, Flags: wr.Signaled, SGE: []mr.SGE{a.r.SGE(100, 1500)}}}))
	w.poll()
	w.collect()
	require.Equal(w.t, "[{3 0} {4 0} {9 0}]", fmt.Sprint(append(append(summary(&b.sends), summary(&a.sends)...), summary(&b.recvs)...)))
	require.True(w.t, bytes.Equal(b.b[:3000], a.b[100:3100]) && bytes.Equal(b.b[:3000], b.b[4000:7000]), "live connection: bytes differ")
	require.True(w.t, bytes.Equal(a.b[100:1600], b.b[12000:13500]), "live connection: received bytes differ")
	require.Equal(w.t, byte(5), a.b[8000]+a.b[8007])
	p.expects = (p.expects + 3 + 3 + 1) & mask24
}

type outcome struct {
	id     uint64
	status cq.Status
}

func summary(s *sink) (list []outcome) {
	for _, c := range s.got {
		list = append(list, outcome{c.WRID, c.Status})
	}
	s.got = s.got[:0]
	return list
}

func (p *pair) close() {
	for i := range p.ends {
		e := &p.ends[i]
		e.q.Close()
		require.Zero(p.w.t, e.r.Lent())
		require.NoError(p.w.t, e.r.Deregister(p.w.t.Context()))
		require.NoError(p.w.t, e.r.PD().Dealloc())
	}
}
