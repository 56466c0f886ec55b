package tools

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// A watch ends when nothing moves, and not before.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Uint64
		ctx, stop := Watch(t.Context(), 100*time.Millisecond, n.Load)
		defer stop()
		for range 20 { // longer than the patience
			n.Add(1)
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, ctx.Err())
		}
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrSilent)
		require.ErrorIs(t, Cause(ctx, errors.New("another")), ErrSilent)

		ctx, stop = Watch(t.Context(), time.Hour, n.Load)
		stop()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	})
}

func TestCompareBytes(t *testing.T) {
	require.NoError(t, CompareBytes("x", []byte("abc"), []byte("abc")))
	err := CompareBytes("message 3", []byte("abd"), []byte("abc"))
	require.ErrorIs(t, err, ErrData)
	require.EqualError(t, err, "message 3: byte 2 of 3 is 0x64, not 0x63")
}

func TestNICAddr(t *testing.T) {
	local := netip.MustParseAddr("127.94.190.1")
	a, err := (&Common{Local: local, Host: "127.0.0.1"}).NICAddr(t.Context())
	require.NoError(t, err)
	require.Equal(t, local, a)
	a, err = (&Common{Host: "127.0.0.1", Port: 1}).NICAddr(t.Context())
	require.NoError(t, err)
	require.Equal(t, netip.MustParseAddr("127.0.0.1"), a)
	a, err = (&Common{}).NICAddr(t.Context())
	require.NoError(t, err)
	require.True(t, a.IsValid() && !a.IsUnspecified())
	_, err = (&Common{Host: "no.such.host.invalid", Port: 1}).NICAddr(t.Context())
	require.ErrorIs(t, err, ErrExchange)
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// What could not be printed is not lost from sight.
func TestOutErr(t *testing.T) {
	c := Common{Out: brokenPipe{}}
	c.Printf("result %d\n", 1)
	require.EqualError(t, c.OutErr(), "broken pipe")
	var b bytes.Buffer
	c = Common{Out: &b}
	c.Printf("result %d\n", 1)
	require.NoError(t, c.OutErr())
	require.Equal(t, "result 1\n", b.String())
}
