package rping

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// game runs both ends of a game, each with its own Config.
func game(t *testing.T, n int, server, client Config) (s, c *toolstest.End[Result]) {
	t.Helper()
	return toolstest.Pair(t, n, toolstest.Patience, func(ctx context.Context, common tools.Common) (*Result, error) {
		cfg := server
		if common.Client() {
			cfg = client
		}
		cfg.Common = common
		return Run(ctx, cfg)
	})
}

func TestGames(t *testing.T) {
	for i, size := range []int{MinSize, 64, 1000, MaxSize} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			cfg := Config{Count: 5, Size: size, Verbose: true, Validate: true}
			s, c := game(t, 200+i, cfg, cfg)
			require.NoError(t, s.Err)
			require.NoError(t, c.Err)
			require.Equal(t, 5, s.Res.Rounds)
			require.Equal(t, 5, c.Res.Rounds)
			require.Equal(t, 5, strings.Count(c.Out.String(), "\nping data: rdma-ping-")+1)
			require.Contains(t, s.Out.String(), "server ping data: rdma-ping-4: ")
			require.Contains(t, s.Out.String(), "server DISCONNECT EVENT after 5 rounds\n")
		})
	}
}

// The ball is what the original's client sent in the recording of its second round
// and prints of any.
func TestBall(t *testing.T) {
	b := make([]byte, 64)
	ball(b, 0)
	require.Equal(t, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\x00", string(b))
	ball(b, 1)
	require.Equal(t, "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\x00", string(b))
	ball(b, 57)
	require.Equal(t, "rdma-ping-57: zABCD", string(b[:19]))
	ball(b, 58)
	require.Equal(t, "rdma-ping-58: ABCDE", string(b[:19]))
}

func TestCountsThatDiffer(t *testing.T) {
	s, c := game(t, 210, Config{Count: 7}, Config{Count: 3})
	require.NoError(t, c.Err)
	require.ErrorIs(t, s.Err, tools.ErrData)
	require.ErrorContains(t, s.Err, "the client ended it after 3 rounds, not 7")
}

func TestOptions(t *testing.T) {
	for want, cfg := range map[string]Config{"-S 25": {Size: 25}, "-S 65536": {Size: 65536}, "-C -1": {Count: -1}} {
		_, err := Run(t.Context(), cfg)
		require.ErrorIs(t, err, tools.ErrOption, want)
		require.ErrorContains(t, err, want)
	}
}

// Nobody listens: the reason is in the error.
func TestRejected(t *testing.T) {
	n, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr("127.94.211.2")})
	require.NoError(t, err)
	defer n.Close()
	l, err := n.Listen(t.Context(), ":1", hixl.ListenConfig{}) // on another port
	require.NoError(t, err)
	defer l.Close()
	_, err = Run(t.Context(), Config{Common: tools.Common{Host: "127.94.211.2", Local: netip.MustParseAddr("127.94.211.1")}})
	require.ErrorIs(t, err, hixl.ErrRejected)
	require.ErrorContains(t, err, "rejected: invalid service id, nobody listens there (8)")
}

func TestNobodyThere(t *testing.T) {
	_, err := Run(t.Context(), Config{Common: tools.Common{
		Host: "127.94.212.2", Local: netip.MustParseAddr("127.94.212.1"), Patience: 200 * time.Millisecond,
	}})
	require.ErrorIs(t, err, tools.ErrSilent)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Run(ctx, Config{Common: tools.Common{Local: netip.MustParseAddr("127.94.212.2"), Ready: func(net.Addr) { cancel() }}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "no client came")
}

// hostile runs a server and gives a client of the test's making its connection.
func hostile(t *testing.T, n int, patience time.Duration, play func(ctx context.Context, c *hixl.Conn, cq *hixl.CQ, mr *hixl.Region)) error {
	t.Helper()
	s, _ := toolstest.Pair(t, n, patience, func(ctx context.Context, common tools.Common) (*Result, error) {
		if !common.Client() {
			return Run(ctx, Config{Common: common, Validate: true})
		}
		nic, err := hixl.OpenNIC(hixl.Config{Address: common.Local})
		require.NoError(t, err)
		defer nic.Close()
		pd := nic.AllocPD()
		cq, err := nic.CreateCQ(32)
		require.NoError(t, err)
		mr, err := pd.Alloc(4096, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteWrite)
		require.NoError(t, err)
		c, err := nic.Dial(ctx, net.JoinHostPort(common.Host, strconv.Itoa(DefaultPort)), hixl.DialOptions{
			QPConfig: hixl.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq},
			Receives: []hixl.RecvWR{{SGE: []hixl.SGE{mr.SGE(64, 16)}}, {SGE: []hixl.SGE{mr.SGE(64, 16)}}},
		})
		if err == nil { // else the server has given up
			play(ctx, c, cq, mr)
		}
		return nil, err
	})
	return s.Err
}

func send(t *testing.T, c *hixl.Conn, mr *hixl.Region, n uint32) {
	t.Helper()
	require.NoError(t, c.PostSend(hixl.SendWR{Op: hixl.OpSend, Flags: hixl.Signaled, SGE: []hixl.SGE{mr.SGE(0, n)}}))
}

func TestHostileClients(t *testing.T) {
	for i, c := range []struct {
		name string
		play func(ctx context.Context, c *hixl.Conn, cq *hixl.CQ, mr *hixl.Region)
		want string
	}{
		{"silent", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, _ *hixl.Region) { <-c.Done() }, "round 1: tools: the peer is silent"},
		{"a short message", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, mr *hixl.Region) {
			send(t, c, mr, 15)
			<-c.Done()
		}, "a message of 15 bytes, not 16"},
		{"a huge source", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, mr *hixl.Region) {
			advert{mr.Addr(), mr.RKey(), 1 << 31}.put(mr.Bytes())
			send(t, c, mr, 16)
			<-c.Done()
		}, "2147483648 bytes, and there is room for 1 to 65535"},
		{"no such source", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, mr *hixl.Region) {
			advert{mr.Addr(), mr.RKey() + 1, 100}.put(mr.Bytes())
			send(t, c, mr, 16)
			<-c.Done()
		}, "remote access error (10)"},
		{"another ball", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, mr *hixl.Region) {
			advert{mr.Addr(), mr.RKey(), 100}.put(mr.Bytes())
			send(t, c, mr, 16)
			<-c.Done()
		}, "what was read: byte"},
		{"gone within a round", func(ctx context.Context, c *hixl.Conn, _ *hixl.CQ, mr *hixl.Region) {
			ball(mr.Bytes()[1000:1100], 0)
			advert{mr.Addr() + 1000, mr.RKey(), 100}.put(mr.Bytes())
			send(t, c, mr, 16)
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, c.Disconnect(ctx))
		}, "the connection has ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "silent" {
				require.ErrorContains(t, hostile(t, 220+i, toolstest.Patience, c.play), c.want)
				return
			}
			toolstest.Patiently(t, 300*time.Millisecond, func(patience time.Duration) bool {
				err := hostile(t, 220+i, patience, c.play)
				require.ErrorIs(t, err, tools.ErrSilent)
				return strings.Contains(err.Error(), c.want)
			})
		})
	}
}
