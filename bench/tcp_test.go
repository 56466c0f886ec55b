package bench

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tcpPair connects a sender and a receiver over loopback.
func tcpPair(t *testing.T, size, region int) (*tcpSender, *tcpReceiver) {
	t.Helper()
	local := netip.MustParseAddr("127.0.0.1")
	r, err := listenTCP(local, size, make([]byte, region))
	require.NoError(t, err)
	t.Cleanup(r.close)
	conn, detail, err := dialTCP(t.Context(), local, local, r.port())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.Contains(t, detail, "TCP_NODELAY")
	s := &tcpSender{conn: conn, src: make([]byte, region+slack), lay: r.lay}
	s.walk = s.lay.walk(0)
	return s, r
}

func TestTCPMovesAndVerifies(t *testing.T) {
	for _, size := range []int{1, 8, 64, 100, 4096, 1 << 20} {
		t.Run(formatSize(size), func(t *testing.T) {
			s, r := tcpPair(t, size, 1<<20)
			var first uint64
			for round := range 3 {
				key := roundKey(1, -1, round)
				fill(s.src, key, 0)
				clear(r.dst)
				n, err := s.send(time.Millisecond, 3)
				require.NoError(t, err)
				require.GreaterOrEqual(t, n, uint64(3))
				require.NoError(t, r.take(t.Context(), s.walk.n))

				r.echo.Store(true)
				h := newHistogram()
				n, err = s.ping(time.Millisecond, 5, h)
				require.NoError(t, err)
				require.EqualValues(t, n, h.h.TotalCount())
				require.NoError(t, r.take(t.Context(), s.walk.n))
				r.echo.Store(false)

				require.NoError(t, r.lay.verify(r.dst, key, []span{{first, s.walk.n}}))
				require.ErrorIs(t, r.lay.verify(r.dst, key+1, []span{{first, s.walk.n}}), ErrVerify)
				first = s.walk.n
			}
		})
	}
}

func TestTCPTakeOfMessagesThatDoNotCome(t *testing.T) {
	s, r := tcpPair(t, 64, 1<<16)
	_, err := s.send(0, 1)
	require.NoError(t, err)
	require.NoError(t, r.take(t.Context(), s.walk.n))
	require.ErrorContains(t, r.take(t.Context(), s.walk.n-1), "messages arrived")

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.take(ctx, s.walk.n+1), context.DeadlineExceeded)

	require.NoError(t, s.conn.Close())
	require.ErrorContains(t, r.take(t.Context(), s.walk.n+1), "receiving")
}

func TestTCPReceiverClosesBeforeAnyoneCame(t *testing.T) {
	r, err := listenTCP(netip.MustParseAddr("127.0.0.1"), 64, make([]byte, 4096))
	require.NoError(t, err)
	r.close()
	require.Error(t, r.take(t.Context(), 1))
}

func TestMemcpyVerifies(t *testing.T) {
	for _, size := range []int{8, 100, 65536} {
		l, err := newLayout(1<<17, size, 1)
		require.NoError(t, err)
		src, dst := make([]byte, 1<<17+slack), make([]byte, 1<<17)
		fill(src, 5, 0)
		w := l.walk(0)
		n := copyMessages(dst, src, &w, time.Millisecond, 10)
		require.GreaterOrEqual(t, n, uint64(10))
		require.NoError(t, l.verify(dst, 5, []span{{0, w.n}}))
	}
}

func TestProcessCPUGrows(t *testing.T) {
	before := processCPU()
	b := make([]byte, 1<<20)
	for i := range 50 {
		fill(b, uint64(i), 0)
	}
	require.Greater(t, processCPU(), before)
}
