package bench

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hosttest"
)

// listening starts a Listen and returns where it listens and its notes after the
// first. It ends with the test.
func listening(t *testing.T, local netip.Addr) (at string, notes chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	notes = make(chan string, 100)
	ended := make(chan error, 1)
	go func() { ended <- Listen(ctx, "127.0.0.1:0", local, func(s string) { notes <- s }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	first := <-notes
	_, err := fmt.Sscanf(first, "listening on %s", &at)
	require.NoError(t, err)
	if local.IsValid() {
		require.Contains(t, first, "RoCE address "+local.String()+", UDP port 4791")
	} else {
		require.Contains(t, first, "RoCE address the one that a requester's connection comes to")
	}
	return at, notes
}

// tiny is a run that asks a peer at an address for little.
func tiny(local netip.Addr, at string) Config {
	return Config{
		Local: local, Peer: at, Ops: []Op{OpWrite, OpFAA}, Sizes: []int{64}, Region: 64 << 10, Duration: minSlice, Rounds: 1,
	}
}

func TestListenServesOneRunAfterAnother(t *testing.T) {
	a, b := addresses()
	at, notes := listening(t, b)
	for range 2 {
		r, err := Run(t.Context(), tiny(a, at), nil)
		require.NoError(t, err)
		require.Len(t, r.Results, 2)
		require.Equal(t, modeRemote, r.Config.Mode)
		require.Equal(t, b.String(), r.Config.Peer)
		require.Regexp(t, `^session from 127\.0\.0\.1:\d+ at RoCE address `+b.String()+`: begins$`, <-notes)
		require.Regexp(t, `^session from 127\.0\.0\.1:\d+ at RoCE address `+b.String()+` with `+a.String()+`: finished, 2 rounds verified, `, <-notes)
	}
}

// A second requester hears that it waits, and is served when the first has left.
func TestSecondRequesterIsToldThatItWaits(t *testing.T) {
	a, b := addresses()
	at, notes := listening(t, b)
	first, err := net.Dial("tcp", at)
	require.NoError(t, err)
	require.Contains(t, <-notes, "begins")
	cfg := tiny(a, at)
	var told []string
	cfg.Note = func(s string) {
		told = append(told, s)
		require.NoError(t, first.Close())
	}
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Len(t, r.Results, 2)
	require.Equal(t, []string{"waiting: the peer serves one requester at a time, and 1 came before this one"}, told)
	require.Contains(t, <-notes, "nothing was asked for")
}

func TestTooManyRequestersAreSentAway(t *testing.T) {
	at, _ := listening(t, netip.Addr{})
	for range maxWaiting + 1 {
		c, err := net.Dial("tcp", at)
		require.NoError(t, err)
		defer c.Close()
	}
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	var resp response
	require.NoError(t, newWire(c, c).receive(&resp))
	require.Contains(t, resp.Err, "try again later")
}

// A peer of the other family is found out before anything is measured.
func TestOtherFamilyIsRefusedAtHello(t *testing.T) {
	a, _ := addresses()
	hosttest.NeedIPv6(t)
	at, notes := listening(t, netip.IPv6Loopback())
	_, err := Run(t.Context(), tiny(a, at), nil)
	require.ErrorIs(t, err, ErrFlag)
	require.ErrorContains(t, err, "--local "+a.String()+", with a peer at ::1: allowed: RoCE addresses of one family")
	require.Contains(t, <-notes, "begins")
	require.Contains(t, <-notes, "nothing was asked for")
}

func TestSameFamily(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	require.NoError(t, sameFamily(four, four))
	require.NoError(t, sameFamily(six, six))
	require.ErrorIs(t, sameFamily(four, six), ErrFlag)
	require.ErrorIs(t, sameFamily(six, four), ErrFlag)
}
