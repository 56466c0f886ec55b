package toolstest

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/tools"
)

// End is what one end of a run printed and returned.
type End[R any] struct {
	Out bytes.Buffer
	Res *R
	Err error
}

// Patience is for ends that are not to give up: a machine may stand still for seconds.
const Patience = 2 * time.Minute

// Patiently tries with ever more patience until ok, and fails the test when that does
// not help. It is for what an end says when it gives up: on a machine that stands still
// it may do so too early.
func Patiently(t *testing.T, first time.Duration, try func(patience time.Duration) (ok bool)) {
	t.Helper()
	for p := first; !try(p); p *= 8 {
		require.Less(t, p, Patience, "more patience does not help")
		t.Logf("again: %v were not enough", p)
	}
}

// Pair runs a server on 127.94.n.2 and a client on 127.94.n.1, and waits for both.
// run makes an end's Config of the Common it is given and runs it.
func Pair[R any](
	t *testing.T, n int, patience time.Duration, run func(context.Context, tools.Common) (*R, error),
) (server, client *End[R]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
	defer cancel()
	server, client = new(End[R]), new(End[R])
	at := netip.AddrFrom4([4]byte{127, 94, byte(n), 2})
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		server.Res, server.Err = run(ctx, tools.Common{
			Local: at, Bind: at.String(), Patience: patience, Out: &server.Out, Ready: func(net.Addr) { close(ready) },
		})
	}()
	select {
	case <-ready:
	case <-ended:
		require.NoError(t, server.Err, "the server is not ready")
		require.Fail(t, "the server has ended without a client")
	}
	client.Res, client.Err = run(ctx, tools.Common{
		Local: netip.AddrFrom4([4]byte{127, 94, byte(n), 1}), Host: at.String(), Patience: patience, Out: &client.Out,
	})
	<-ended
	return server, client
}
