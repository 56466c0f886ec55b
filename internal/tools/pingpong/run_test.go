package pingpong

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// side is what one end of a game printed and returned.
type side struct {
	out bytes.Buffer
	res *Result
	err error
}

// game runs a server on 127.94.60+n.2 and a client on 127.94.60+n.1.
func game(t *testing.T, n int, server, client Config) (s, c *side) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*toolstest.Patience)
	defer cancel()
	s, c = new(side), new(side)
	ready, done := make(chan struct{}), make(chan struct{})
	server.Local = netip.AddrFrom4([4]byte{127, 94, byte(60 + n), 2})
	server.Port = freePort(t, server.Local)
	client.Port = server.Port
	server.Bind, server.Out = server.Local.String(), &s.out
	server.Ready = func(net.Addr) { close(ready) }
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		s.res, s.err = Run(ctx, server)
	})
	select {
	case <-ready:
	case <-done:
		t.Fatal(s.err)
	}
	client.Local, client.Host, client.Out = netip.AddrFrom4([4]byte{127, 94, byte(60 + n), 1}), server.Local.String(), &c.out
	c.res, c.err = Run(ctx, client)
	wg.Wait()
	return s, c
}

// freePort returns a TCP port of addr that nobody listens on: whoever listens on
// the default one of all addresses, such as hixl-bench --serve, is in nobody's way.
func freePort(t *testing.T, addr netip.Addr) int {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestGames(t *testing.T) {
	for i, cfg := range []Config{
		{Service: hixl.RC, Iters: 20, Size: 1, MTU: 256, Check: true},
		{Service: hixl.RC, Iters: 20, Size: 10001, MTU: 4096, Check: true, RxDepth: 3},
		{Service: hixl.RC, Iters: 3, Check: true, RxDepth: 1},
		{Service: hixl.UC, Iters: 20, Size: 9000, Check: true},
		{Service: hixl.UD, Iters: 20, Check: true},
		{Service: hixl.UD, Iters: 20, Size: 4096},
	} {
		t.Run(fmt.Sprintf("%v %d bytes", cfg.Service, cfg.Size), func(t *testing.T) {
			s, c := game(t, i+1, cfg, cfg)
			require.NoError(t, s.err)
			require.NoError(t, c.err)
			require.Equal(t, cfg.Iters, c.res.Iters)
			require.Regexp(t, `(?s)^  local address:  LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID ::ffff:127\.94\.\d\d\.1
  remote address: LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID ::ffff:127\.94\.\d\d\.2
\d+ bytes in \d+\.\d\d seconds = \d+\.\d\d Mbit/sec
\d+ iters in \d+\.\d\d seconds = \d+\.\d\d usec/iter
`, c.out.String())
			require.Regexp(t, regexp.MustCompile(`local address: .* ::ffff:127\.94\.\d\d\.2\n.* ::ffff:127\.94\.\d\d\.1\n`), s.out.String())
		})
	}
}

// The lines are those of the originals, number for number.
func TestResultLines(t *testing.T) {
	r := Result{Size: 256, Iters: 3, Elapsed: 8638 * time.Microsecond}
	require.Equal(t, "1536 bytes in 0.01 seconds = 1.42 Mbit/sec\n3 iters in 0.01 seconds = 2879.33 usec/iter\n", r.String())
}

func TestWrongData(t *testing.T) {
	// A server that checks and a client that does not set the pattern.
	toolstest.Patiently(t, 500*time.Millisecond, func(patience time.Duration) bool {
		common := tools.Common{Patience: patience}
		s, _ := game(t, 20, Config{Common: common, Iters: 3, Check: true}, Config{Common: common, Iters: 3})
		require.Error(t, s.err)
		return errors.Is(s.err, tools.ErrData) &&
			strings.Contains(s.err.Error(), "message 1 (do both ends have -c?): byte 0 of 4096 is 0x7b, not 0x00")
	})
}

func TestSizesThatDiffer(t *testing.T) {
	toolstest.Patiently(t, 500*time.Millisecond, func(patience time.Duration) bool {
		common := tools.Common{Patience: patience}
		s, c := game(t, 21, Config{Common: common, Iters: 3, Size: 64}, Config{Common: common, Iters: 3, Size: 60})
		require.Error(t, s.err)
		require.Error(t, c.err)
		return errors.Is(s.err, tools.ErrData) && strings.Contains(s.err.Error(), "60 bytes long, not 64: give both ends the same -s")
	})
}

// A game whose messages stop coming ends in time, and says how far it got.
func TestSilence(t *testing.T) {
	toolstest.Patiently(t, 200*time.Millisecond, func(patience time.Duration) bool {
		common := tools.Common{Patience: patience}
		s, c := game(t, 22, Config{Common: common, Service: hixl.UC, Iters: 5}, Config{Common: common, Service: hixl.UC, Iters: 3})
		require.Error(t, s.err)
		return c.err == nil && errors.Is(s.err, tools.ErrSilent) && strings.Contains(s.err.Error(), "of 5 messages sent, 3 received")
	})
}

func TestOptions(t *testing.T) {
	for want, cfg := range map[string]Config{
		"-s -1":                 {Size: -1},
		"-n -5":                 {Iters: -5},
		"-m 1000":               {MTU: 1000},
		"-r 40000":              {RxDepth: 40000},
		"--port 70000":          {Common: tools.Common{Port: 70000}},
		"--local 0.0.0.0":       {Common: tools.Common{Local: netip.IPv4Unspecified()}},
		"--patience -1s":        {Common: tools.Common{Patience: -time.Second}},
		"--bind 127.0.0.1 cann": {Common: tools.Common{Host: "x", Bind: "127.0.0.1"}},
	} {
		_, err := Run(t.Context(), cfg)
		require.ErrorIs(t, err, tools.ErrOption, want)
		require.ErrorContains(t, err, want)
	}
}

// What only the NIC can tell comes after the client has come.
func TestLinkLimits(t *testing.T) {
	s, c := game(t, 23, Config{Service: hixl.UD, Size: 5000}, Config{Service: hixl.UD})
	require.ErrorContains(t, s.err, "-s 5000 cannot work: a datagram holds at most the path MTU")
	require.ErrorContains(t, c.err, "0 of 52 bytes")
}

func TestNobodyThere(t *testing.T) {
	_, err := Run(t.Context(), Config{Common: tools.Common{Host: "127.94.84.9"}})
	require.ErrorIs(t, err, tools.ErrExchange)
	require.ErrorContains(t, err, "is the server running, and is this its port (-p)")
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Run(ctx, Config{Common: tools.Common{Bind: "127.94.84.9", Ready: func(net.Addr) { cancel() }}})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Run(t.Context(), Config{Common: tools.Common{Bind: "192.0.2.1"}})
	require.ErrorContains(t, err, "listening")
	require.False(t, errors.Is(err, tools.ErrSilent))
}
