package bench

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport/sim"
)

// What completes or is acknowledged just in time keeps the watchdog quiet, for however
// long; what does neither trips it, just after its patience.
func TestWatchdogSees(t *testing.T) {
	start := time.Unix(1, 0)
	for name, step := range map[string]mark{"messages": {messages: 1}, "packets": {packets: 1}} {
		t.Run(name, func(t *testing.T) {
			dog, now, m := watchdog{since: start}, start, mark{}
			for range 100 {
				now = now.Add(patience)
				require.NoError(t, dog.see(now, m), "it is not over yet")
				m.messages, m.packets = m.messages+step.messages, m.packets+step.packets
				require.NoError(t, dog.see(now, m))
			}
			require.NoError(t, dog.see(now.Add(patience), m))
			err := dog.see(now.Add(patience+1), m)
			require.Equal(t, &StallError{For: patience + 1, Messages: m.messages, Packets: m.packets}, err)
			require.ErrorIs(t, err, ErrStall)
		})
	}
	err := &StallError{For: 26*time.Second + 3, Messages: 10, Packets: 1234}
	require.EqualError(t, err, "nothing moved for 26s: no message completed after 10, and no packet was acknowledged after 1234")
}

// watch takes its marks at the start and then in time.
func TestWatchdogEndsWhatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Uint64
		n.Store(10)
		ctx, stop := watch(t.Context(), func() mark { return mark{packets: n.Load()} })
		defer stop()
		for range 10 {
			time.Sleep(patience / 2)
			n.Add(1)
		}
		require.NoError(t, ctx.Err(), "it moves")
		time.Sleep(2 * patience)
		require.ErrorIs(t, context.Cause(ctx), ErrStall)
		require.ErrorContains(t, context.Cause(ctx), "no packet was acknowledged after 20")
	})
}

// strand is a lane of one queue pair between two NICs on virtual time.
type strand struct {
	t    *testing.T
	net  *sim.Network
	nics [2]*hixl.NIC
	regs [2]*hixl.Region
	lanes
}

func newStrand(t *testing.T, link sim.Link, o hixl.ConnectOptions) *strand {
	s := &strand{t: t, net: sim.New(sim.Config{Seed: 1, Link: link})}
	var qps [2]*hixl.QP
	for i := range s.nics {
		conn, err := s.net.Host(netip.AddrFrom4([4]byte{10, 94, 0, byte(i + 1)}))
		require.NoError(t, err)
		s.nics[i], err = hixl.OpenNIC(hixl.Config{Transport: conn, Clock: s.net.Now, Stepped: true})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.nics[i].Close() })
		pd := s.nics[i].AllocPD()
		s.regs[i], err = pd.Register(make([]byte, 1<<20), hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteWrite)
		require.NoError(t, err)
		cq, err := s.nics[i].CreateCQ(8)
		require.NoError(t, err)
		qps[i], err = s.nics[i].CreateQP(hixl.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
		require.NoError(t, err)
		if i == 0 {
			s.sendCQ = cq
		}
	}
	require.NoError(t, qps[0].Connect(qps[1].Address(), o))
	require.NoError(t, qps[1].Connect(qps[0].Address(), o))
	s.qps = qps[:1]
	return s
}

// run lets virtual time pass, with a look every second as watch has one, and returns what
// the watchdog says, nil when a work request has completed.
func (s *strand) run(limit time.Duration) error {
	dog := watchdog{since: s.time()}
	end, look := s.net.Now().Add(limit), s.net.Now()
	for s.net.Now() < end {
		for worked := true; worked; {
			worked = s.nics[0].Poll(s.net.Now())
			worked = s.nics[1].Poll(s.net.Now()) || worked
		}
		if s.sendCQ.Len() > 0 {
			return nil
		}
		if s.net.Now() >= look {
			look = look.Add(time.Second)
			if err := dog.see(s.time(), mark{packets: s.acknowledged()}); err != nil {
				return err
			}
		}
		next := mono.Earliest(s.net.Next(), mono.Earliest(s.nics[0].Next(), s.nics[1].Next()))
		s.net.Advance(max(s.net.Now(), mono.Earliest(next, look)))
	}
	s.t.Fatalf("not over after %v", limit)
	return nil
}

func (s *strand) time() time.Time { return time.Unix(0, int64(s.net.Now())) }

// A peer that has no receive for a SEND has it sent again without end, and the watchdog
// is not taken in by that.
func TestWatchdogSeesThatSendingIsNoProgress(t *testing.T) {
	s := newStrand(t, sim.Link{Delay: time.Millisecond}, hixl.ConnectOptions{RNRTimer: 20}) // 10 ms
	require.NoError(t, s.qps[0].PostSend(hixl.SendWR{Op: hixl.OpSend, SGE: []hixl.SGE{s.regs[0].SGE(0, 64<<10)}, Flags: hixl.Signaled}))
	start := s.net.Now()
	err := s.run(time.Minute)
	require.ErrorIs(t, err, ErrStall)
	require.LessOrEqual(t, s.net.Now().Sub(start), patience+3*time.Second)
	st := s.qps[0].Stats()
	require.Greater(t, st.Retransmitted, uint64(1000))
	require.Zero(t, st.Acknowledged)
}

// A message that takes longer than the watchdog's patience, because most packets are
// lost, is waited for.
func TestWatchdogSeesSlowProgress(t *testing.T) {
	for _, op := range []hixl.Op{hixl.OpWrite, hixl.OpRead} {
		s := newStrand(t, sim.Link{Delay: 10 * time.Millisecond, Loss: 0.4, Reorder: 0.3, Corrupt: 0.1}, hixl.ConnectOptions{MTU: 1024, Timeout: ackTimeout})
		require.NoError(t, s.qps[0].PostSend(hixl.SendWR{
			Op: op, SGE: []hixl.SGE{s.regs[0].SGE(0, 512<<10)}, Flags: hixl.Signaled, RemoteAddr: s.regs[1].Addr(), RKey: s.regs[1].RKey(),
		}))
		start := s.net.Now()
		require.NoError(t, s.run(time.Hour), "%v", op)
		require.EqualValues(t, 512, s.acknowledged())
		require.Greater(t, s.net.Now().Sub(start), 2*patience)
	}
}
