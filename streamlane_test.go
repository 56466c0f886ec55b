package hixl

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport/sim"
)

// A stream that looks often after an event is not noted more than once.
func TestEventNotesStreamOnce(t *testing.T) {
	e, s := &StreamEvent{done: make(chan struct{})}, new(Stream)
	for range 3 {
		require.False(t, e.query(s))
	}
	require.Len(t, e.waits, 1)
}

// What is put on a stream between the break of a connection, or a failure, and the
// stream's learning of it is not begun: else it would take effect without what was
// before it.
func TestStreamDoesNotPassWhatBreaks(t *testing.T) {
	for _, how := range []string{"break", "failure"} {
		t.Run(how, func(t *testing.T) {
			net := sim.New(sim.Config{})
			conn, err := net.Host(netip.MustParseAddr("10.0.0.1"))
			require.NoError(t, err)
			c, err := Open(Config{Transport: conn, Clock: net.Now, Stepped: true, Peers: PeerConfig{Seed: 1}})
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			p, err := c.Peer(netip.MustParseAddrPort("10.0.0.2:18515"))
			require.NoError(t, err)
			s := c.NewStream(StreamConfig{})
			tell := &Transfer{Op: Notify, Notify: &Notification{}}
			first, err := s.Transfer(p, tell)
			require.NoError(t, err)
			p.mu.Lock()
			require.False(t, first.waits)
			if how == "break" {
				p.breaks++
			} else {
				s.lost.Store(true)
			}
			p.release()
			second, err := s.Transfer(p, tell)
			require.NoError(t, err)
			p.mu.Lock()
			require.True(t, second.waits)
			p.release()
			first.StartCancel()
			for c.Poll(net.Now()) {
			}
			_, err = second.Poll()
			require.ErrorIs(t, err, ErrStream)
			require.ErrorIs(t, err, ErrCanceled)
			require.True(t, s.Query())
			require.False(t, s.lost.Load())
		})
	}
}
