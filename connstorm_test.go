package hixl_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// storm is many connections among the hosts of a fabric. Each is dialed, carries
// one write, and is hung up: by its dialer when its number is even, else by the
// other side.
type storm struct {
	*fabric
	listeners           []*hixl.Listener
	calls               map[int]*call
	order               []int // of the calls
	total, begun, ended int
}

type call struct {
	dialed, accepted     *hixl.Conn
	from, to             int
	asked, written, hung bool
}

// Small queues: what is counted here is connections.
func (h *host) small() hixl.QPConfig {
	c := h.config()
	c.MaxSendWR, c.MaxRecvWR, c.MaxInline = 2, 2, hixl.None
	return c
}

func (f *fabric) storm(total, window int) {
	f.t.Helper()
	s := &storm{fabric: f, total: total, calls: make(map[int]*call)}
	for _, h := range s.hosts {
		l, err := h.nic.Listen(s.t.Context(), ":18515", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: h.small()}, Backlog: total})
		require.NoError(s.t, err)
		s.listeners = append(s.listeners, l)
	}
	s.until(time.Hour, func() bool {
		for s.begun < s.total && len(s.calls) < window {
			s.begin(s.begun)
		}
		s.accept()
		s.complete()
		s.order = slices.DeleteFunc(s.order, func(n int) bool { return s.look(n, s.calls[n]) })
		return s.ended == s.total
	})
	for _, l := range s.listeners {
		require.NoError(s.t, l.Close())
	}
	s.rest(time.Hour)
	s.empty()
}

func (s *storm) begin(n int) {
	c := &call{from: n % len(s.hosts), to: (n + 1 + n/len(s.hosts)%(len(s.hosts)-1)) % len(s.hosts)}
	c.dialed = s.dial(c.from, s.listeners[c.to].Addr(), hixl.DialOptions{
		QPConfig: s.hosts[c.from].small(), PrivateData: binary.BigEndian.AppendUint32(nil, uint32(n)),
	})
	s.calls[n], s.order = c, append(s.order, n)
	s.begun++
}

func (s *storm) accept() {
	for i, l := range s.listeners {
		for c, err := l.Accept(over()); err == nil; c, err = l.Accept(over()) {
			call := s.calls[int(binary.BigEndian.Uint32(c.PrivateData()))]
			require.Equal(s.t, i, call.to)
			require.Nil(s.t, call.accepted, "twice")
			call.accepted = c
		}
	}
}

// place is where connection n writes.
func place(n int) uint64 { return uint64(n % 8192 * 8) }

func (s *storm) complete() {
	var wc [64]hixl.Completion
	for _, h := range s.hosts {
		got, err := h.cq.Poll(wc[:])
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range wc[:got] {
			require.NoError(s.t, wc[i].Err())
			n := int(wc[i].WRID)
			to := s.hosts[s.calls[n].to]
			require.Equal(s.t, uint64(n), binary.NativeEndian.Uint64(to.mem.Bytes()[place(n):]))
			s.calls[n].written = true
		}
	}
}

func (s *storm) look(n int, c *call) (ended bool) {
	switch {
	case !c.asked:
		if err := c.dialed.Err(); err != nil {
			s.t.Fatal(err)
		}
		if closed(c.dialed.Established()) {
			c.asked = true
			word, to := hixl.Word(uint64(n)), s.hosts[c.to]
			copy(s.hosts[c.from].mem.Bytes()[place(n)+65536:], word[:])
			require.NoError(s.t, c.dialed.PostSend(hixl.SendWR{
				ID: uint64(n), Op: hixl.OpWrite, SGE: []hixl.SGE{s.hosts[c.from].mem.SGE(place(n)+65536, 8)},
				RemoteAddr: to.mem.Addr() + place(n), RKey: to.mem.RKey(),
			}))
		}
	case c.hung:
		if closed(c.dialed.Done()) && closed(c.accepted.Done()) {
			require.ErrorIs(s.t, c.dialed.Err(), hixl.ErrDisconnected)
			require.NoError(s.t, c.dialed.Close())
			require.NoError(s.t, c.accepted.Close())
			delete(s.calls, n)
			s.ended++
			return true
		}
	case c.written && c.accepted != nil:
		c.hung = true
		if n%2 == 0 {
			require.Error(s.t, c.dialed.Disconnect(over()), "begun, not waited for")
		} else {
			require.NoError(s.t, c.accepted.Close())
		}
	}
	return false
}

// Everybody dials at once; no connection is lost, and nothing is left of any.
func TestManyConnections(t *testing.T) {
	f := newFabric(t, 8, sim.Config{Seed: 1, Link: sim.Link{Delay: 50 * time.Microsecond, Jitter: time.Millisecond, Loss: 0.02, Duplicate: 0.02}})
	f.storm(500, 500)
}

// Connections come and go for a long time among many hosts.
func TestLongStorm(t *testing.T) {
	total := 10000
	if raceOn {
		total = 1000
	}
	f := newFabric(t, 64, sim.Config{Seed: 2, Link: sim.Link{
		Delay: 100 * time.Microsecond, Jitter: 100 * time.Microsecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01,
	}})
	f.tick = 200 * time.Microsecond
	f.storm(total, 512)
}
