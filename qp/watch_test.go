package qp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// Who watches is told of the first request, in RTS too, and of the end that the
// queue pair comes to by itself, whatever tells the application.
func TestWatch(t *testing.T) {
	f := two(t)
	var seen []qp.Event
	cfg := nictest.PairConfig{QP: qp.Config{Watch: func(e qp.Event) { seen = append(seen, e) }}}
	a, b := f.Pair(0, 1, cfg)
	mem := b.Region(64)
	a.Post(write(mem), write(mem))
	f.Run(time.Millisecond)
	require.Len(t, a.Take(a.Send), 2)
	require.Equal(t, []qp.Event{{Type: qp.EventCommEst, QPN: b.QPN()}}, seen)
	require.Empty(t, b.NIC.Events(), "in RTS it is no event of verbs")

	seen = nil
	bad := write(mem)
	bad.RKey++
	bad.SGE = sges(a.Region(64), 8)
	a.Post(bad)
	f.Run(time.Millisecond)
	require.ErrorIs(t, a.Take(a.Send)[0].Err(), cq.ErrRemoteAccess)
	require.Len(t, seen, 2)
	require.ElementsMatch(t, []any{a.QPN(), b.QPN()}, []any{seen[0].QPN, seen[1].QPN})
	for _, e := range seen {
		require.Equal(t, qp.EventQPFatal, e.Type)
	}

	seen = nil
	c, _ := f.Pair(0, 1, cfg)
	require.NoError(t, c.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	c.Post(qp.SendWR{Op: wr.OpSend, Flags: wr.Signaled})
	f.Run(time.Millisecond)
	require.Len(t, c.Take(c.Send), 1)
	require.Empty(t, seen, "by command: the commander knows")
}
