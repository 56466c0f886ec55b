package bench

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var peerAddr = netip.MustParseAddr("127.99.1.2")

func TestChildDeathIsReported(t *testing.T) {
	died := make(chan error, 1)
	c, err := startChild(childCommand(t, "die"), peerAddr, func(err error) { died <- err })
	require.NoError(t, err)
	defer c.stop()
	err = <-died
	var pe *PeerError
	require.ErrorAs(t, err, &pe)
	require.ErrorIs(t, err, ErrPeer)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
	require.Equal(t, "no room for a NIC", pe.Stderr)
	require.ErrorContains(t, err, "127.99.1.2")
	require.ErrorContains(t, err, "its last words: no room for a NIC")
}

func TestCallToADeadChildTellsHowItDied(t *testing.T) {
	c, err := startChild(childCommand(t, "die"), peerAddr, func(error) {})
	require.NoError(t, err)
	defer c.stop()
	_, err = c.control().call(t.Context(), &request{Do: doHello})
	require.ErrorIs(t, err, ErrPeer)
	require.ErrorContains(t, err, "exit status 3")
}

func TestCallToAChildThatLeft(t *testing.T) {
	c, err := startChild(childCommand(t, "leave"), peerAddr, func(error) {})
	require.NoError(t, err)
	defer c.stop()
	_, err = c.control().call(t.Context(), &request{Do: doHello})
	require.ErrorIs(t, err, ErrPeer)
}

func TestAnswersOfAChild(t *testing.T) {
	c, err := startChild(childCommand(t, "refuse"), peerAddr, func(error) {})
	require.NoError(t, err)
	defer c.stop()
	_, err = c.control().call(t.Context(), &request{Do: doHello})
	require.ErrorIs(t, err, ErrPeer)
	require.ErrorContains(t, err, "port busy")

	c, err = startChild(childCommand(t, "babble"), peerAddr, func(error) {})
	require.NoError(t, err)
	defer c.stop()
	_, err = c.control().call(t.Context(), &request{Do: doHello})
	require.ErrorContains(t, err, "this is no JSON")
}

func TestCallEndsWithItsContext(t *testing.T) {
	c, err := startChild(childCommand(t, "forever"), peerAddr, func(error) {})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, c.cmd.Process.Kill())
		c.stop()
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	_, err = c.control().call(ctx, &request{Do: doHello})
	require.ErrorIs(t, err, why)
}

func TestStartingNothing(t *testing.T) {
	_, err := startChild([]string{"/nonexistent/program"}, peerAddr, nil)
	require.ErrorIs(t, err, ErrPeer)
	require.ErrorContains(t, err, "/nonexistent/program")
}

func TestTailKeepsTheEnd(t *testing.T) {
	var l tail
	for range 100 {
		n, err := l.Write([]byte(strings.Repeat("x", 100)))
		require.NoError(t, err)
		require.Equal(t, 100, n)
	}
	_, err := l.Write([]byte(" the\n end\n"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(l.b), stderrTail)
	require.True(t, strings.HasSuffix(l.String(), "x the end"))
}
