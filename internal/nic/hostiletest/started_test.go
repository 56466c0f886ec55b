package hostiletest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
)

// startedEnd is one side of a connection between NICs that run on their own.
type startedEnd struct {
	nic  *nic.NIC
	conn transport.Conn
	q    *nic.Queue
	cq   *cq.Queue
	r    *mr.Region
	b    []byte
}

const startedBytes = 1 << 20

func startedPair(t *testing.T, addrs [2]netip.Addr) (ends [2]startedEnd) {
	for i := range ends {
		e := &ends[i]
		var err error
		e.conn, err = udp.Open(addrs[i], udp.Config{})
		require.NoError(t, err)
		e.nic, err = nic.Open(nic.Config{Conn: e.conn, MaxQPs: 64})
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.nic.Close() })
		e.nic.Start()
		pd := e.nic.AllocPD()
		e.b = make([]byte, startedBytes)
		e.r, err = pd.Register(host.New(e.b), mr.Options{Access: everyone})
		require.NoError(t, err)
		e.cq, err = cq.New(64)
		require.NoError(t, err)
		e.q, err = e.nic.CreateQP(qp.Config{PD: pd, SendSink: e.cq, RecvSink: e.cq})
		require.NoError(t, err)
	}
	for i := range ends {
		e := &ends[i]
		modify := func(a qp.Attr, mask qp.AttrMask) { require.NoError(t, e.q.Modify(&a, mask|qp.MaskState)) }
		modify(qp.Attr{State: qp.Init, Port: 1, Access: qp.RemoteAccess}, qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess)
		modify(qp.Attr{
			State: qp.RTR, PathMTU: roce.MTU1024, DestQPN: ends[1-i].q.QPN(), RecvPSN: 1000, MaxDestRead: 4, MinRNRTimer: 1,
			AV: qp.AddressVector{Addr: addrs[1-i], SmallIDs: true},
		}, qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV)
		modify(qp.Attr{State: qp.RTS, SendPSN: 1000, Timeout: 14, RetryCount: 7, RNRRetry: 7, MaxRead: 4},
			qp.MaskSendPSN|qp.MaskTimeout|qp.MaskRetryCount|qp.MaskRNRRetry|qp.MaskMaxRead)
	}
	return ends
}

// Running NICs move bytes while packets rain on the very connection: from a
// stranger, sealed; and from the peer's own address, not sealed. Nothing of it is
// noticed but by the counters.
func TestHostileWhileRunning(t *testing.T) {
	addr := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 91, 1, i}) }
	ends := startedPair(t, [2]netip.Addr{addr(1), addr(2)})
	a, b := &ends[0], &ends[1]
	stranger, err := udp.Open(addr(3), udp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = stranger.Close() })

	ctx, stop := context.WithCancel(t.Context())
	var rain sync.WaitGroup
	for i, from := range []transport.Conn{stranger, b.conn} {
		rain.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				s := raindrop(rng, from, a, i == 0)
				_, err := from.WriteBatch([]transport.Tx{s})
				if err != nil {
					return
				}
				time.Sleep(20 * time.Microsecond)
			}
		})
	}
	transfer(t, a, b)
	stop()
	rain.Wait()
	require.Equal(t, qp.RTS, a.q.State())
}

// raindrop is a packet that fits the connection in everything but its source, or
// its seal.
func raindrop(rng *rand.Rand, from transport.Conn, to *startedEnd, sealed bool) transport.Tx {
	p := roce.Packet{
		Opcode: pick[roce.Opcode](rng, roce.OpWriteOnly, roce.OpWriteMiddle, roce.OpAcknowledge, roce.OpReadRequest, roce.OpSendOnly, roce.OpCNP, roce.OpFetchAdd),
		PKey:   0xFFFF, DestQP: to.q.QPN(), PSN: roce.PSN(1000 + rng.IntN(20000)), AckReq: true,
		RETH: roce.RETH{VA: to.r.Addr(), RKey: to.r.RKey(), Len: 64}, AETH: roce.AETH{Syndrome: roce.SynNakAccess},
	}
	p.SetPayload(make([]byte, pick(rng, 0, 64, 1024)))
	b := p.Append(nil)
	port := from.SourcePort(uint16(rng.Uint32()))
	if sealed {
		h := heading{from.LocalAddr(), to.conn.LocalAddr(), port, 0}
		binary.LittleEndian.PutUint32(b[len(b)-icrcLen:], h.sum(b))
	}
	return transport.Tx{Data: b, Dst: to.conn.LocalAddr(), SrcPort: port}
}

// rained reports whether packets of both kinds have been dropped.
func rained(n *nic.NIC) bool {
	s := n.Stats()
	return s.Drops[nic.DropSource] > 0 && s.Drops[nic.DropICRC] > 0
}

// transfer writes and reads memory to and fro, and checks every byte.
func transfer(t *testing.T, a, b *startedEnd) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const half = startedBytes / 2
	for round := 0; round < 40 || !rained(a.nic); round++ {
		for i := range b.b[:half] {
			b.b[i] = byte(i*7 + round + i>>8)
		}
		require.NoError(t, b.q.PostSend([]qp.SendWR{
			{Op: wr.OpWrite, SGE: []mr.SGE{b.r.SGE(0, half)}, RemoteAddr: a.r.Addr(), RKey: a.r.RKey()},
			{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{b.r.SGE(half, half)}, RemoteAddr: a.r.Addr(), RKey: a.r.RKey()},
		}))
		var wc [1]cq.Completion
		_, err := b.cq.Wait(ctx, wc[:])
		require.NoError(t, err)
		require.NoError(t, wc[0].Err())
		require.True(t, bytes.Equal(b.b[:half], b.b[half:]), "round %d", round)
	}
}
