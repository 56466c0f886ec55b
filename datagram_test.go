package hixl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/hosttest"
)

// party is a NIC with one queue pair and a region, for tests of the other
// services.
type party struct {
	nic *hixl.NIC
	qp  *hixl.QP
	cq  *hixl.CQ
	mr  *hixl.Region
}

func newParty(t *testing.T, addr string, kind hixl.Type) *party {
	t.Helper()
	n, err := hixl.OpenNIC(carried(t, at(addr)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	p := &party{nic: n}
	p.cq, err = n.CreateCQ(64)
	require.NoError(t, err)
	pd := n.AllocPD()
	p.mr, err = pd.Register(make([]byte, 1<<16), hixl.LocalWrite|hixl.RemoteWrite)
	require.NoError(t, err)
	p.qp, err = n.CreateQP(hixl.QPConfig{PD: pd, Type: kind, QKey: 0x1234, SendCQ: p.cq, RecvCQ: p.cq})
	require.NoError(t, err)
	return p
}

func (p *party) wait(t *testing.T) hixl.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var c [1]hixl.Completion
	n, err := p.cq.Wait(ctx, c[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, c[0].Err())
	return c[0]
}

// Datagrams over IPv4 and IPv6, with the network header in front (§1.10).
func TestDatagrams(t *testing.T) {
	for name, addr := range map[string][2]string{"IPv4": {"127.66.0.1", "127.66.0.2"}, "IPv6": {"::1", ""}} {
		t.Run(name, func(t *testing.T) {
			if addr[0] == "::1" {
				hosttest.NeedIPv6(t)
			}
			a := newParty(t, addr[0], hixl.UD)
			b := a
			if addr[1] != "" {
				b = newParty(t, addr[1], hixl.UD)
				require.NoError(t, b.qp.Activate())
			}
			require.NoError(t, a.qp.Activate())
			require.NoError(t, b.qp.PostRecv(hixl.RecvWR{ID: 7, SGE: []hixl.SGE{b.mr.SGE(0, 100)}}))
			copy(a.mr.Bytes()[1000:], "a datagram")
			require.NoError(t, a.qp.PostSend(hixl.SendWR{
				ID: 1, Op: hixl.OpSendImm, Flags: hixl.Signaled, SGE: []hixl.SGE{a.mr.SGE(1000, 10)}, Imm: 99,
				To: hixl.Destination{Addr: b.nic.Address(), QPN: b.qp.QPN(), QKey: 0x1234},
			}))
			first, second := a.wait(t), b.wait(t)
			if first.WRID == 7 { // one queue for both
				first, second = second, first
			}
			require.EqualValues(t, 1, first.WRID)
			require.EqualValues(t, 7, second.WRID)
			require.EqualValues(t, 50, second.ByteLen)
			require.EqualValues(t, 99, second.Imm)
			require.Equal(t, a.nic.Address(), second.Peer)
			require.Equal(t, a.qp.QPN(), second.SrcQP)
			got := b.mr.Bytes()
			require.Equal(t, "a datagram", string(got[hixl.GRHLen:50]))
			if name == "IPv4" {
				require.EqualValues(t, 0, got[0]>>4, "bytes 0..19 tell the families apart")
				require.EqualValues(t, 0x45, got[20])
				require.Zero(t, checksum(got[20:40]))
			} else {
				require.EqualValues(t, 6, got[0]>>4)
			}
		})
	}
}

// checksum is the Internet checksum, 0 over a header whose own is right.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	return ^uint16(sum)
}

// Messages over an unreliable connection.
func TestUnreliableConnection(t *testing.T) {
	a, b := newParty(t, "127.66.0.3", hixl.UC), newParty(t, "127.66.0.4", hixl.UC)
	require.NoError(t, a.qp.Connect(b.qp.Address(), hixl.ConnectOptions{}))
	require.NoError(t, b.qp.Connect(a.qp.Address(), hixl.ConnectOptions{}))
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(i * 7)
	}
	require.NoError(t, b.qp.PostRecv(hixl.RecvWR{ID: 7, SGE: []hixl.SGE{b.mr.SGE(0, 20000)}}, hixl.RecvWR{ID: 8}))
	require.NoError(t, a.qp.PostSend(
		hixl.SendWR{ID: 1, Op: hixl.OpSend, Flags: hixl.Signaled, SGE: []hixl.SGE{a.mr.SGE(0, 10001)}},
		hixl.SendWR{
			ID: 2, Op: hixl.OpWriteImm, Flags: hixl.Signaled, SGE: []hixl.SGE{a.mr.SGE(20000, 9000)}, Imm: 5,
			RemoteAddr: b.mr.Addr() + 30000, RKey: b.mr.RKey(),
		},
	))
	require.EqualValues(t, 1, a.wait(t).WRID)
	require.EqualValues(t, 2, a.wait(t).WRID)
	require.EqualValues(t, 10001, b.wait(t).ByteLen)
	require.EqualValues(t, 9000, b.wait(t).ByteLen)
	require.Equal(t, a.mr.Bytes()[:10001], b.mr.Bytes()[:10001])
	require.Equal(t, a.mr.Bytes()[20000:29000], b.mr.Bytes()[30000:39000])
	require.Error(t, a.qp.PostSend(hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{a.mr.SGE(0, 8)}}))
}
