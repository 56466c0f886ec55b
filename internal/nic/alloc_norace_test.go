//go:build !race

package nic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// Nothing is allocated from post to completion, whatever the operation and however
// many packets it has, over memory and over sockets.
func TestNoAllocations(t *testing.T) {
	x, y := newWire("10.0.0.1", "10.0.0.2")
	for name, r := range map[string]*rig{
		"memory": newRig(t, x, y, 1<<20),
		"udp":    newRig(t, openUDP(t, "127.88.10.1"), openUDP(t, "127.88.10.2"), 1<<20),
	} {
		room := []mr.SGE{r.remote.SGE(0, 1<<20)}
		recvs := []qp.RecvWR{{SGE: room}}
		for _, tt := range []struct {
			op   wr.Op
			size int
		}{
			{wr.OpWrite, 8},
			{wr.OpWrite, 100000},
			{wr.OpRead, 8},
			{wr.OpRead, 100000},
			{wr.OpFetchAdd, 8},
			{wr.OpCmpSwap, 8},
			{wr.OpSend, 100},
			{wr.OpSend, 100000},
			{wr.OpWriteImm, 5000},
		} {
			req := r.wr(tt.op, tt.size)
			wrs := []qp.SendWR{req, req}
			wrs[0].Flags = 0
			inline := []qp.SendWR{{Op: wr.OpWrite, Flags: wr.Signaled, Inline: make([]byte, 200), RemoteAddr: r.remote.Addr(), RKey: r.remote.RKey()}}
			once := func() {
				for range 2 {
					if tt.op == wr.OpSend || tt.op == wr.OpWriteImm {
						if r.b.PostRecv(recvs) != nil {
							t.Fatal("receive refused")
						}
					}
				}
				if r.a.PostSend(wrs) != nil || r.a.PostSend(inline) != nil {
					t.Fatal("send refused")
				}
				r.step(t, 2)
				for n := 1; n > 0; {
					n, _ = r.b.Recv.Poll(r.done)
				}
			}
			for range 50 { // rings and batches grow to what is used of them
				once()
			}
			require.Zero(t, testing.AllocsPerRun(100, once), "%s: %v of %d bytes", name, tt.op, tt.size)
		}
	}
}
