package nic_test

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/udp"
)

// Whoever receives a long message over sockets naps in it, be it a peer's WRITE or the
// answer to a READ, where the receive buffer is large enough and time is not all.
func TestNapsWhileDataComes(t *testing.T) {
	for name, c := range map[string]struct {
		mode   nic.Progress
		buffer int
		never  bool
	}{
		"balanced":     {mode: nic.Balanced},
		"low CPU":      {mode: nic.LowCPU},
		"low latency":  {mode: nic.LowLatency, never: true},
		"small buffer": {buffer: 512 << 10, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			var conns [2]*udp.Conn
			for i, addr := range []string{"127.88.30.1", "127.88.30.2"} {
				conn, err := udp.Open(netip.MustParseAddr(addr), udp.Config{RecvBuffer: c.buffer})
				require.NoError(t, err)
				conns[i] = conn
			}
			f := nictest.OverAs(t, nic.Config{Progress: c.mode}, conns[0], conns[1])
			var naps [2]atomic.Int32
			for i, n := range f.NICs {
				n.Naps(func(time.Duration) { naps[i].Add(1) })
				n.Start()
			}
			a, b := f.Pair(0, 1, nictest.PairConfig{})
			a.DriveSend()
			const size = 16 << 20
			local, remote := a.Region(2*size), b.Region(size)
			want := random(7, size)
			copy(local.Bytes(), want)
			for i, op := range []wr.Op{wr.OpWrite, wr.OpRead} {
				a.Post(qp.SendWR{Op: op, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(uint64(i)*size, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
				require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
				who := 1 - i // receives the data
				if c.never || conns[who].Caps().RxHolds < nic.GatherHolds {
					require.Zero(t, naps[who].Load(), op)
				} else {
					require.NotZero(t, naps[who].Load(), op)
				}
			}
			require.True(t, bytes.Equal(want, local.Bytes()[size:]))
		})
	}
}
