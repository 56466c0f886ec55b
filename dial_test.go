package hixl_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/hosttest"
)

// host is a NIC with what connections need: a domain, a queue, a region.
type host struct {
	nic *hixl.NIC
	pd  *hixl.PD
	cq  *hixl.CQ
	mem *hixl.Region
}

func newHost(t testing.TB, cfg hixl.Config) *host {
	t.Helper()
	h := &host{}
	var err error
	h.nic, err = hixl.OpenNIC(carried(t, cfg))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.nic.Close()) })
	h.pd = h.nic.AllocPD()
	h.cq, err = h.nic.CreateCQ(4096)
	require.NoError(t, err)
	h.mem, err = h.pd.Alloc(1<<17, everything)
	require.NoError(t, err)
	return h
}

func (h *host) config() hixl.QPConfig {
	return hixl.QPConfig{PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq, SignalAll: true}
}

func (h *host) listen(t testing.TB, port string, o hixl.AcceptOptions) *hixl.Listener {
	t.Helper()
	if o.QPConfig.PD == nil {
		o.QPConfig = h.config()
	}
	l, err := h.nic.Listen(t.Context(), port, hixl.ListenConfig{Accept: o})
	require.NoError(t, err)
	return l
}

// patience is how long anything may take that must happen.
const patience = 2 * time.Minute

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wait takes one completion.
func (h *host) wait(t *testing.T) hixl.Completion {
	t.Helper()
	var c [1]hixl.Completion
	_, err := h.cq.Wait(soon(t), c[:])
	require.NoError(t, err)
	return c[0]
}

func TestDial(t *testing.T) {
	for name, addr := range map[string][2]string{
		"IPv4": {"127.93.0.1", "127.93.0.2"}, "IPv6 with itself": {"::1", "::1"}, "IPv4 with itself": {"127.93.0.3", "127.93.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			if addr[0] == "::1" {
				hosttest.NeedIPv6(t)
			}
			a := newHost(t, at(addr[0]))
			b := a
			if addr[1] != addr[0] {
				b = newHost(t, at(addr[1]))
			}
			l := b.listen(t, ":0", hixl.AcceptOptions{
				PrivateData: []byte("welcome"), Receives: []hixl.RecvWR{{ID: 5, SGE: []hixl.SGE{b.mem.SGE(1000, 100)}}},
			})
			accepted := make(chan *hixl.Conn, 1)
			go func() {
				c, err := l.Accept(soon(t))
				if err != nil {
					t.Error(err)
				}
				accepted <- c
			}()
			c, err := a.nic.Dial(soon(t), l.Addr().String(), hixl.DialOptions{QPConfig: a.config(), PrivateData: []byte("hello"), Connect: hixl.ConnectOptions{Timeout: ackTimeout}})
			require.NoError(t, err)
			s := <-accepted
			require.Equal(t, "welcome", string(c.PrivateData()))
			require.Equal(t, "hello", string(s.PrivateData()))
			require.True(t, c.IsHixl() && s.IsHixl())
			require.Equal(t, l.Addr(), c.RemoteAddr())
			require.Equal(t, c.LocalAddr(), s.RemoteAddr())

			copy(a.mem.Bytes(), "a message")
			require.NoError(t, c.PostSend(hixl.SendWR{ID: 1, Op: hixl.OpSend, SGE: []hixl.SGE{a.mem.SGE(0, 9)}}))
			require.NoError(t, ptr(a.wait(t)).Err())
			require.NoError(t, ptr(b.wait(t)).Err())
			require.Equal(t, "a message", string(b.mem.Bytes()[1000:1009]))

			require.NoError(t, s.PostRecv(hixl.RecvWR{ID: 6}))
			require.NoError(t, c.Disconnect(soon(t)))
			<-s.Done()
			require.ErrorIs(t, s.Err(), hixl.ErrDisconnected)
			require.Equal(t, hixl.StateError, s.State())
			require.Error(t, ptr(b.wait(t)).Err(), "flushed")
			require.NoError(t, c.Close())
			require.NoError(t, s.Close())

			require.NoError(t, l.Close())
			_, err = a.nic.Dial(soon(t), l.Addr().String(), hixl.DialOptions{QPConfig: a.config()})
			var rejected *hixl.RejectedError
			require.ErrorAs(t, err, &rejected)
			require.Equal(t, hixl.RejectNoListener, rejected.Reason)
			require.ErrorContains(t, err, "nobody listens there (8): start the server")
			_, err = l.Accept(soon(t))
			require.True(t, errors.Is(err, net.ErrClosed), err)
		})
	}
}
