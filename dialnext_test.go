package hixl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// A name whose first address fails: the next one gets its share of the time. A queue
// pair of the caller's has its receives once, however many are asked, and does not go
// on after silence.
func TestDialNextAddress(t *testing.T) {
	a := newHost(t, at("127.93.7.3"))
	newHost(t, at("127.93.7.4"))
	l := newHost(t, at("127.93.7.6")).listen(t, ":5", hixl.AcceptOptions{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		for c, err := l.Accept(t.Context()); err == nil; c, err = l.Accept(t.Context()) {
			_ = c.Disconnect(soon(t))
			_ = c.Close()
		}
	}()
	cfg := a.config()
	cfg.MaxRecvWR = 1
	own := func() *hixl.QP {
		q, err := a.nic.CreateQP(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		return q
	}
	const refuses, silent = "127.93.7.4", "127.93.7.5"
	for name, c := range map[string]struct {
		first string
		o     hixl.DialOptions
		want  string
	}{
		"refused":          {refuses, hixl.DialOptions{QPConfig: cfg}, ""},
		"refused, our own": {refuses, hixl.DialOptions{QP: &hixl.QP{}}, ""},
		"silent":           {silent, hixl.DialOptions{QPConfig: cfg}, ""},
		"silent, our own":  {silent, hixl.DialOptions{QP: &hixl.QP{}}, "hixl: dial 127.93.7.5:5: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Resolver = names(t, map[string][]string{"peer.test.": {c.first, "127.93.7.6"}})
			c.o.Receives = []hixl.RecvWR{{ID: 7, SGE: []hixl.SGE{a.mem.SGE(0, 8)}}}
			dial := func(wait time.Duration) (*hixl.Conn, error) {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				if c.o.QP != nil {
					c.o.QP = own()
				}
				return a.nic.Dial(ctx, "peer.test:5", c.o)
			}
			wait := 2 * time.Second
			conn, err := dial(wait)
			for c.want == "" && errors.Is(err, context.DeadlineExceeded) && wait < patience { // the machine stood still
				wait *= 4
				conn, err = dial(wait)
			}
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "127.93.7.6")
				return
			}
			require.NoError(t, err)
			require.Equal(t, l.Addr(), conn.RemoteAddr())
			require.NoError(t, conn.Close())
		})
	}
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
	})
}
