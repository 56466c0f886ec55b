package hixl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// left waits until a NIC holds nothing but what rests.
func (h *host) left(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		s := h.nic.ConnStats()
		return s.Connections == s.Timewait && s.HalfOpen == 0 && s.SIDR == 0 && h.nic.Stats().QPs == 0
	}, patience, time.Millisecond)
}

// Waiting ends with its context, and what was begun is taken back on both sides.
func TestContextsEndWaiting(t *testing.T) {
	a, b := newHost(t, at("127.93.1.1")), newHost(t, at("127.93.1.2"))
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, err := a.nic.Dial(short(), "127.93.1.99:18515", hixl.DialOptions{QPConfig: a.config()})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "hixl: dial 127.93.1.99:18515: context deadline exceeded; is an RDMA NIC")
	var ce *hixl.ConnError
	require.True(t, errors.As(err, &ce) && ce.Timeout())
	a.left(t)

	l, err := b.nic.Listen(t.Context(), ":18515", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: b.config()}})
	require.NoError(t, err)
	_, err = l.AcceptRequest(short())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = l.Accept(short())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan *hixl.Request)
	go func() {
		r, err := l.AcceptRequest(soon(t))
		if err != nil {
			t.Error(err)
		}
		cancel()
		asked <- r
	}()
	_, err = a.nic.Dial(ctx, l.Addr().String(), hixl.DialOptions{QPConfig: a.config()})
	require.ErrorIs(t, err, context.Canceled)
	r := <-asked
	a.left(t)
	b.left(t)
	_, err = r.Accept(hixl.AcceptOptions{QPConfig: b.config()})
	require.Error(t, err, "the peer has gone")
	b.left(t)

	_, err = a.nic.ResolveUD(short(), "127.93.1.99:18515", hixl.ResolveOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	a.left(t)
	_, err = a.nic.Dial(over(), l.Addr().String(), hixl.DialOptions{QPConfig: a.config()})
	require.ErrorIs(t, err, context.Canceled)

	done := make(chan error)
	go func() { _, err := l.Accept(soon(t)); done <- err }()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
}

// Names are looked up; those without an address of the family, and everything else
// that is no address, say what is wrong.
func TestAddressesOfDial(t *testing.T) {
	a := newHost(t, at("127.93.1.3"))
	_, err := a.nic.Dial(soon(t), "[::1]:5", hixl.DialOptions{QPConfig: a.config()})
	require.ErrorContains(t, err, "hixl: dial [::1]:5: nic: host is ::1, allowed: an address of the family of the NIC's, 127.93.1.3")
	_, err = a.nic.Dial(soon(t), "127.0.0.1", hixl.DialOptions{QPConfig: a.config()})
	require.ErrorContains(t, err, "missing port")
	_, err = a.nic.Dial(soon(t), "nobody.test:1", hixl.DialOptions{QPConfig: a.config(), Resolver: names(t, nil)})
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	_, err = a.nic.Dial(soon(t), "127.0.0.1:5", hixl.DialOptions{})
	require.ErrorIs(t, err, hixl.ErrConfig)

	// A name with several addresses: the first refuses, the second accepts.
	b, c := newHost(t, at("127.93.1.4")), newHost(t, at("127.93.1.5"))
	elsewhere := b.listen(t, ":1", hixl.AcceptOptions{})
	l := c.listen(t, ":5", hixl.AcceptOptions{})
	go func() { _, _ = l.Accept(soon(t)) }()
	r := names(t, map[string][]string{"peer.test.": {"127.93.1.4", "127.93.1.5"}})
	conn, err := a.nic.Dial(soon(t), "peer.test:5", hixl.DialOptions{QPConfig: a.config(), Resolver: r})
	require.NoError(t, err)
	require.Equal(t, l.Addr(), conn.RemoteAddr())
	require.NoError(t, conn.Close())
	_, err = a.nic.Dial(soon(t), "peer.test:6", hixl.DialOptions{QPConfig: a.config(), Resolver: r})
	require.ErrorContains(t, err, "dial 127.93.1.4:6: rejected")
	require.ErrorContains(t, err, "dial 127.93.1.5:6: rejected")
	require.NoError(t, elsewhere.Close())
	require.NoError(t, l.Close())
}

// Many goroutines dial, use and close connections to one listener at a time.
func TestDialConcurrently(t *testing.T) {
	a, b := newHost(t, at("127.93.1.6")), newHost(t, at("127.93.1.7"))
	l := b.listen(t, ":18515", hixl.AcceptOptions{})
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept(soon(t))
			if err != nil {
				return
			}
			served.Go(func() {
				<-c.Done()
				_ = c.Close()
			})
		}
	})
	var group sync.WaitGroup
	errs := make(chan error, 100)
	for i := range 20 {
		group.Go(func() {
			for range 5 {
				errs <- dialAndWrite(soon(t), a, b, l, uint64(i*8))
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, l.Close())
	served.Wait()
	a.left(t)
	b.left(t)
}

func dialAndWrite(ctx context.Context, a, b *host, l *hixl.Listener, place uint64) error {
	q, err := a.nic.CreateCQ(16)
	if err != nil {
		return err
	}
	cfg := a.config()
	cfg.SendCQ, cfg.RecvCQ = q, q
	c, err := a.nic.Dial(ctx, l.Addr().String(), hixl.DialOptions{QPConfig: cfg, Connect: hixl.ConnectOptions{Timeout: ackTimeout}})
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.PostSend(hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{a.mem.SGE(place, 8)}, RemoteAddr: b.mem.Addr() + place, RKey: b.mem.RKey()})
	if err != nil {
		return err
	}
	var wc [1]hixl.Completion
	if _, err := q.Wait(ctx, wc[:]); err != nil {
		return err
	}
	if err := wc[0].Err(); err != nil {
		return err
	}
	if err := c.Disconnect(ctx); err != nil {
		return fmt.Errorf("after the write: %w", err)
	}
	return nil
}

// Dials that are taken back at any moment, a listener that comes and goes, waits
// that end: nobody hangs and nothing is left.
func TestTakeBackStorm(t *testing.T) {
	a, b := newHost(t, at("127.93.8.1")), newHost(t, at("127.93.8.2"))
	ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				listenShortly(ctx, b)
			}
		})
	}
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				dialShortly(ctx, a)
			}
		})
	}
	all.Wait()
	a.left(t)
	b.left(t)
}

// shortly is a context that ends soon, often too soon.
func shortly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
}

func listenShortly(ctx context.Context, h *host) {
	l, err := h.nic.Listen(ctx, ":77", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: h.config()}, Backlog: 3})
	if err != nil {
		return // another listens
	}
	var accepting sync.WaitGroup
	for range 2 {
		accepting.Go(func() {
			for err := error(nil); !errors.Is(err, net.ErrClosed); {
				short, cancel := shortly(ctx)
				var c *hixl.Conn
				if c, err = l.Accept(short); err == nil {
					_ = c.Close()
				}
				cancel()
			}
		})
	}
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	_ = l.Close()
	accepting.Wait()
}

func dialShortly(ctx context.Context, h *host) {
	short, cancel := shortly(ctx)
	defer cancel()
	c, err := h.nic.Dial(short, "127.93.8.2:77", hixl.DialOptions{QPConfig: h.config()})
	if err != nil {
		return
	}
	if rand.IntN(2) == 0 {
		_ = c.Disconnect(short)
	}
	_ = c.Close()
}
