package bench

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// waiter is a NIC with somebody who waits for completions.
type waiter struct {
	nic *hixl.NIC
	cq  *hixl.CQ
	qp  *hixl.QP
	mem *hixl.Region
}

func newWaiter(t *testing.T, addr string, mode hixl.Progress) *waiter {
	t.Helper()
	w := &waiter{}
	var err error
	w.nic, err = hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(addr), Progress: mode})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.nic.Close() })
	w.cq, err = w.nic.CreateCQ(16)
	require.NoError(t, err)
	pd := w.nic.AllocPD()
	w.mem, err = pd.Alloc(4096, hixl.LocalWrite|hixl.RemoteWrite)
	require.NoError(t, err)
	w.qp, err = w.nic.CreateQP(hixl.QPConfig{PD: pd, SendCQ: w.cq, RecvCQ: w.cq})
	require.NoError(t, err)
	return w
}

// In no mode does who waits for nothing keep a processor busy: not the application that
// waits for a completion, nor the NICs, after there was something to do.
func TestNoModeBurnsACoreWhenIdle(t *testing.T) {
	const settle, idle = 50 * time.Millisecond, 150 * time.Millisecond
	for name, mode := range map[string]hixl.Progress{"balanced": hixl.Balanced, "low latency": hixl.LowLatency, "low CPU": hixl.LowCPU} {
		t.Run(name, func(t *testing.T) {
			a, b := newWaiter(t, "127.98.6.1", mode), newWaiter(t, "127.98.6.2", mode)
			require.NoError(t, a.qp.Connect(b.qp.Address(), hixl.ConnectOptions{}))
			require.NoError(t, b.qp.Connect(a.qp.Address(), hixl.ConnectOptions{}))
			require.NoError(t, a.qp.PostSend(hixl.SendWR{
				Op: hixl.OpWrite, Flags: hixl.Signaled, SGE: []hixl.SGE{a.mem.SGE(0, 64)}, RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey(),
			}))
			done := make([]hixl.Completion, 1)
			_, err := a.cq.Wait(t.Context(), done)
			require.NoError(t, err)
			require.NoError(t, done[0].Err())

			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			for _, w := range []*waiter{a, b} {
				waiting.Go(func() { _, _ = w.cq.Wait(ctx, make([]hixl.Completion, 1)) })
			}
			defer waiting.Wait()
			defer cancel()
			require.NoError(t, pause(t.Context(), settle))
			before := processCPU()
			require.NoError(t, pause(t.Context(), idle))
			require.Less(t, processCPU()-before, idle/3)
		})
	}
}
