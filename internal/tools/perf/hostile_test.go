package perf

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// hello is what a well-behaved client says before the addresses.
var helloBytes = version + strings.Repeat("\x00", versionLen-len(version)) + "\x00\x00\x10\x00" + "\x00\x00\x00\x40" + "3\x00"

func goodLine() dest {
	return dest{outs: 1, qpn: 2, psn: 3, rkey: 4, addr: 5, gid: tools.GID(netip.MustParseAddr("10.0.0.1"))}
}

// Whatever a client says, the server ends with an error that tells what is wrong.
func TestHostileClients(t *testing.T) {
	d := goodLine()
	line := string(d.line())
	v6, none := d, d
	v6.gid, none.gid = tools.GID(netip.MustParseAddr("fd77::1")), [16]byte{}
	for name, c := range map[string]struct{ says, want string }{
		"nothing":             {"", "version: the peer closed the connection after 0 of 16"},
		"a browser":           {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is no version of perftest"},
		"no number":           {strings.Repeat("\xff", 400), "is no version of perftest"},
		"not a number":        {"NaN" + strings.Repeat("\x00", 13), "it is of version NaN"},
		"an old one":          {"5.60" + strings.Repeat("\x00", 12), "it is of version 5.60"},
		"cut short":           {helloBytes[:18], "page size: the peer closed the connection after 2 of 4"},
		"no page":             {helloBytes[:16] + "\x00\x00\x00\x00", "page size: not understood: 0 is no power of two"},
		"a huge page":         {helloBytes[:16] + "\x7f\xff\xff\xff", "page size: not understood: 2147483647 is no power of two"},
		"a page of 2 GiB":     {helloBytes[:16] + "\x80\x00\x00\x00", "2147483648 is no power of two up to 1048576"},
		"an odd line":         {helloBytes[:20] + "\x00\x00\x00\x41", "cache line size: not understood: 65"},
		"a line as a page":    {helloBytes[:20] + "\x00\x00\x10\x00", "a line of 4096 bytes in a page of 4096"},
		"no MTU":              {helloBytes[:24] + "9\x00", "path MTU: not understood"},
		"an MTU of two":       {helloBytes[:24] + "33", "path MTU: not understood"},
		"no address":          {helloBytes, "address 1 of 1: the peer closed the connection after 0 of 108"},
		"a bad address":       {helloBytes + strings.Repeat("x", lineLen), "is no address line"},
		"no hex":              {helloBytes + strings.Replace(line, "000002", "00000g", 1), "field 2 is no number of 6 hex digits"},
		"a short field":       {helloBytes + strings.Replace(line, "0001:", "001:0", 1), "field 1 is no number of 4 hex digits"},
		"no GID":              {helloBytes + string(none.line()), "the peer named no GID"},
		"another IP version":  {helloBytes + string(v6.line()), "choose the same IP version at both ends"},
		"another second line": {helloBytes + line + strings.Replace(line, "000002", "000009", 1), "another queue pair than in the first round"},
		"an end":              {helloBytes + line + line, "barrier before the traffic: the peer closed the connection after 0 of 108"},
		"no traffic":          {helloBytes + strings.Repeat(line, 3), "barrier after the traffic: the peer closed the connection after 0 of 108"},
		"a mad report":        {helloBytes + strings.Repeat(line, 4) + strings.Repeat("\xff", 40), "the peer's report: 18446744073709551615 bytes, with room for"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, peer := toolstest.Connection(t)
			_, err := peer.Write([]byte(c.says))
			require.NoError(t, err)
			require.NoError(t, peer.(*net.TCPConn).CloseWrite())
			require.ErrorContains(t, serveOne(t, ours, toolstest.Patience), c.want)
		})
	}
}

// serveOne runs a server of write_bw on a connection.
func serveOne(t *testing.T, conn net.Conn, patience time.Duration) error {
	t.Helper()
	cfg := Config{Test: writeBW, Common: tools.Common{Patience: patience}}
	require.NoError(t, cfg.fill())
	dev, err := openDevice(&cfg, netip.MustParseAddr("127.94.130.1"))
	require.NoError(t, err)
	return dev.close(newTCPSession(&cfg, tools.NewConn(conn, patience), dev).run(t.Context()))
}

// A client that stops is given up in time, wherever it stops.
func TestSilentClients(t *testing.T) {
	d := goodLine()
	for _, n := range []int{0, 16, 20, 26, 26 + lineLen, 26 + 3*lineLen} {
		ours, peer := toolstest.Connection(t)
		_, err := peer.Write([]byte(helloBytes + strings.Repeat(string(d.line()), 3))[:n])
		require.NoError(t, err)
		err = serveOne(t, ours, 100*time.Millisecond)
		require.ErrorIs(t, err, tools.ErrSilent, "after %d bytes", n)
	}
}

// A peer whose process dies during the traffic.
func TestPeerGone(t *testing.T) {
	for i, cfg := range []Config{
		{Test: writeBW, Duration: time.Minute},
		{Test: sendBW, Duration: time.Minute},
		{Test: sendBW, Connection: hixl.UD, Duration: time.Minute},
		{Test: writeLat, Duration: time.Minute},
		{Test: readLat, Duration: time.Minute},
	} {
		s, c := toolstest.Pair(t, 140+i, 2*time.Second, func(ctx context.Context, common tools.Common) (*Result, error) {
			cfg := cfg
			cfg.Common, cfg.Timeout = common, 12
			if common.Client() {
				c, cut := context.WithCancel(ctx)
				defer time.AfterFunc(300*time.Millisecond, cut).Stop()
				ctx = c
			}
			return Run(ctx, cfg)
		})
		require.Error(t, c.Err, cfg.Test) // canceled, or left by a server that gave up early
		require.Error(t, s.Err, cfg.Test)
	}
}

// Datagrams that find no receive are lost, and missed.
func TestLostDatagrams(t *testing.T) {
	s, c := toolstest.Pair(t, 150, 5*time.Second, func(ctx context.Context, common tools.Common) (*Result, error) {
		cfg := Config{Common: common, Test: sendBW, Connection: hixl.UD, Iters: 2000, Size: 64}
		if !common.Client() {
			cfg.RxDepth = 1
		}
		return Run(ctx, cfg)
	})
	require.Error(t, c.Err)
	require.ErrorIs(t, s.Err, tools.ErrData)
	require.ErrorContains(t, s.Err, "of 2000 messages arrived; UD does not send lost ones again")
}

// Ends with different sizes and counts.
func TestEndsThatDiffer(t *testing.T) {
	run := func(n int, patience time.Duration, server, client Config) (s, c *toolstest.End[Result]) {
		return toolstest.Pair(t, n, patience, func(ctx context.Context, common tools.Common) (*Result, error) {
			cfg := server
			if common.Client() {
				cfg = client
			}
			cfg.Common, cfg.Timeout = common, 16
			return Run(ctx, cfg)
		})
	}
	s, _ := run(151, toolstest.Patience, Config{Test: sendBW, Size: 100, Iters: 10}, Config{Test: sendBW, Size: 99, Iters: 10})
	require.ErrorIs(t, s.Err, tools.ErrData)
	require.ErrorContains(t, s.Err, "message 1 of queue pair 1: 99 bytes long, not 100")

	toolstest.Patiently(t, time.Second, func(patience time.Duration) bool {
		s, c := run(152, patience, Config{Test: sendBW, Size: 100, Iters: 20}, Config{Test: sendBW, Size: 100, Iters: 10})
		require.Error(t, c.Err)
		require.Error(t, s.Err)
		return strings.Contains(s.Err.Error(), "10 of 20 messages arrived; give both ends the same -n and -q")
	})

	_, c := run(153, toolstest.Patience, Config{Test: writeBW, Size: 64, Iters: 10}, Config{Test: writeBW, Size: 1 << 20, Iters: 10})
	require.ErrorContains(t, c.Err, "remote access error (10)")

	// The server of writes needs no numbers of its own.
	s, c = run(154, toolstest.Patience, Config{Test: writeBW}, Config{Test: writeBW, Size: 1000, Iters: 3})
	require.NoError(t, s.Err)
	require.NoError(t, c.Err)
	require.True(t, s.Res.Compared)
	require.EqualValues(t, 3, s.Res.Messages)
}

// The exchange over a connection with messages of wrong lengths.
func TestHostileConnections(t *testing.T) {
	for i, n := range []uint32{15, 17, 64} {
		s, _ := toolstest.Pair(t, 160+i, toolstest.Patience, func(ctx context.Context, common tools.Common) (*Result, error) {
			if !common.Client() {
				return Run(ctx, Config{Common: common, Test: writeBW, CM: true})
			}
			require.NoError(t, common.Fill(tools.DefaultPort))
			nic, err := hixl.OpenNIC(hixl.Config{Address: common.Local})
			require.NoError(t, err)
			defer nic.Close()
			pd := nic.AllocPD()
			end, err := tools.NewCMLinkEnd(nic, pd, toolstest.Patience)
			require.NoError(t, err)
			c, err := common.DialCM(ctx, nic, hixl.DialOptions{QPConfig: end.QPConfig(pd), Receives: end.Receives()})
			require.NoError(t, err)
			link := end.Link(c)
			require.NoError(t, link.Send(ctx, "something", bytes.Repeat([]byte{'6'}, int(n))))
			<-c.Done()
			return nil, nil
		})
		require.ErrorIs(t, s.Err, tools.ErrExchange)
		require.ErrorContains(t, s.Err, "version: a message of")
	}
}

func FuzzParseLine(f *testing.F) {
	d := goodLine()
	f.Add(d.line())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseLine(b)
		if err != nil {
			return
		}
		again, err := parseLine(d.line())
		require.NoError(t, err)
		require.Equal(t, d, again)
		if s, err := parseStruct(d.bytes()); err == nil {
			require.Equal(t, d, s)
		}
	})
}

func FuzzParseStruct(f *testing.F) {
	d := goodLine()
	f.Add(d.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseStruct(b)
		if err != nil {
			return
		}
		again, err := parseStruct(d.bytes())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
