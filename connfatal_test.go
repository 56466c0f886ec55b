package hixl_test

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport"
)

// A NIC that never did anything about connections answers who asks for one, at
// once: nobody listens (§5.9, §5.4 SIDR_REP). Nothing is left of it.
func TestSilentNICAnswers(t *testing.T) {
	f := newFabric(t, 2, good)
	silent := netip.AddrPortFrom(simAddr(1), 18515)
	began := f.net.Now()
	c := f.dial(0, silent, hixl.DialOptions{})
	q, err := f.hosts[0].nic.StartResolveUD(silent, hixl.ResolveOptions{})
	require.NoError(t, err)
	f.until(time.Second, func() bool { return closed(c.Done()) && closed(q.Done()) })
	require.Less(t, f.net.Now().Sub(began), time.Millisecond, "not after a timeout")
	var rejected *hixl.RejectedError
	require.ErrorAs(t, c.Err(), &rejected)
	require.Equal(t, hixl.RejectNoListener, rejected.Reason)
	_, err = q.Result()
	var declined *hixl.DeclinedError
	require.ErrorAs(t, err, &declined)
	require.Equal(t, cm.SIDRUnsupported, declined.Status)
	f.rest(time.Minute)
	f.empty()
	require.Equal(t, uint64(2), f.hosts[1].nic.ConnStats().Refused)
}

// The connection manager's own memory does not count against what the application
// may register.
func TestRegionsAreTheApplications(t *testing.T) {
	f := newFabric(t, 1, good, func(_ int, c *hixl.Config) { c.MaxRegions = 2 })
	h := f.hosts[0] // has one
	h.listen(t, ":5", hixl.AcceptOptions{})
	f.settle()
	r, err := h.pd.Register(make([]byte, 8), hixl.LocalWrite)
	require.NoError(t, err)
	require.NoError(t, r.Deregister(t.Context()))
}

// breakable reports an error instead of reading once it has one.
type breakable struct {
	transport.Conn
	err atomic.Pointer[error]
}

func (c *breakable) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	if err := c.err.Load(); err != nil {
		return 0, *err
	}
	return c.Conn.ReadBatch(b, wait)
}

var errUnplugged = errors.New("unplugged")

// When the transport fails for good, everybody who waits for a peer is told so,
// and nobody waits afterwards.
func TestFatalEndsWaiting(t *testing.T) {
	var b *breakable
	f := newFabric(t, 2, good, func(i int, c *hixl.Config) {
		if i == 1 {
			b = &breakable{Conn: c.Transport}
			c.Transport = b
		}
	})
	h := f.hosts[1]
	_, live := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	l := h.listen(t, ":18515", hixl.AcceptOptions{})
	l2 := h.listen(t, ":18516", hixl.AcceptOptions{})
	u, err := h.nic.ListenUD(t.Context(), ":18515", hixl.UDConfig{})
	require.NoError(t, err)
	f.dial(0, l2.Addr(), hixl.DialOptions{})
	waiting := f.request(l2)
	nobody := netip.AddrPortFrom(simAddr(77), 1)
	dialing := f.dial(1, nobody, hixl.DialOptions{})
	asking, err := h.nic.StartResolveUD(nobody, hixl.ResolveOptions{})
	require.NoError(t, err)
	blocked := make(chan error)
	go func() { _, err := l.Accept(soon(t)); blocked <- err }()

	b.err.Store(&errUnplugged)
	f.until(time.Second, func() bool { return closed(live.Done()) && closed(dialing.Done()) && closed(asking.Done()) })
	fatal := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, hixl.ErrDevice)
		require.ErrorIs(t, err, errUnplugged)
		require.NotErrorIs(t, err, net.ErrClosed)
		var device *hixl.DeviceError
		require.ErrorAs(t, err, &device)
	}
	fatal(<-blocked)
	fatal(live.Err())
	require.ErrorIs(t, live.Err(), hixl.ErrDisconnected)
	fatal(dialing.Err())
	_, err = asking.Result()
	fatal(err)
	_, err = l.Accept(over())
	fatal(err)
	require.EqualError(t, err, "hixl: accept 10.93.0.1:18515: nic: receiving has ended: unplugged: close the NIC and open another")
	_, err = l2.AcceptRequest(over())
	fatal(err)
	_, err = u.AcceptRequest(over())
	fatal(err)
	_, err = waiting.Accept(hixl.AcceptOptions{QPConfig: h.config()})
	fatal(err)
	for _, port := range []string{":18517", ":0"} {
		_, err = h.nic.Listen(t.Context(), port, hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: h.config()}})
		fatal(err)
	}
	_, err = h.nic.StartDial(nobody, hixl.DialOptions{QPConfig: h.config()})
	fatal(err)
	_, err = h.nic.StartResolveUD(nobody, hixl.ResolveOptions{})
	fatal(err)
	require.NoError(t, l.Close())
	require.NoError(t, u.Close())
	require.NoError(t, live.Close())
	require.NoError(t, f.hosts[0].nic.Close())
	f.rest(time.Minute)
	require.Zero(t, h.nic.Next(), "and the NIC is at rest")
}

// The same for a NIC that is closed.
func TestCloseEndsAccept(t *testing.T) {
	f := newFabric(t, 1, good)
	l := f.hosts[0].listen(t, ":1", hixl.AcceptOptions{})
	blocked := make(chan error)
	go func() { _, err := l.Accept(soon(t)); blocked <- err }()
	require.NoError(t, f.hosts[0].nic.Close())
	err := <-blocked
	require.ErrorIs(t, err, hixl.ErrClosed)
	require.ErrorIs(t, err, net.ErrClosed)
	require.NotErrorIs(t, err, hixl.ErrDevice)
}

// On real sockets: a dial to a NIC that never listened is refused at once, and who
// waits for connections learns that the socket is gone.
func TestSilentAndFatalOverSockets(t *testing.T) {
	a := newHost(t, at("127.93.1.7"))
	socket := &breakable{}
	cfg := at("127.93.1.8")
	cfg.WrapTransport = func(c transport.Conn) transport.Conn { socket.Conn = c; return socket }
	b := newHost(t, cfg)
	_, err := a.nic.Dial(soon(t), "127.93.1.8:18515", hixl.DialOptions{QPConfig: a.config()})
	var rejected *hixl.RejectedError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, hixl.RejectNoListener, rejected.Reason)
	_, err = a.nic.ResolveUD(soon(t), "127.93.1.8:18515", hixl.ResolveOptions{})
	require.ErrorIs(t, err, hixl.ErrRejected)

	l := b.listen(t, ":18515", hixl.AcceptOptions{})
	failed := make(chan error)
	go func() { _, err := l.Accept(soon(t)); failed <- err }()
	c, err := a.nic.Dial(soon(t), "127.93.1.8:18515", hixl.DialOptions{QPConfig: a.config()})
	require.NoError(t, err)
	require.NoError(t, <-failed)
	go func() { _, err := l.Accept(soon(t)); failed <- err }()
	socket.err.Store(&errUnplugged)
	require.NoError(t, c.Close()) // its packet is the one that finds out
	err = <-failed
	require.ErrorIs(t, err, hixl.ErrDevice)
	require.NotErrorIs(t, err, hixl.ErrClosed)
}
