package pingpong

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

const recordings = "../../../testdata/pcaps"

// Told the recorded address, each role sends the recorded bytes.
func TestRecordedExchanges(t *testing.T) {
	for _, name := range []string{"tool-rc-pingpong", "tool-ud-pingpong"} {
		msgs := toolstest.Exchange(t, recordings, name)
		require.Len(t, msgs, 3)
		for _, client := range []bool{true, false} {
			own := toolstest.Recorded(msgs, client)
			mine, err := parseDest(own[0])
			require.NoError(t, err)
			require.Equal(t, own[0], mine.line())

			ours, peer := toolstest.Connection(t)
			played := make(chan error, 1)
			go func() { played <- toolstest.Play(peer, msgs, !client) }()
			var connected dest
			theirs, err := exchange(t.Context(), tools.NewConn(ours, 10*time.Second), client, mine, func(d dest) error { connected = d; return nil })
			require.NoError(t, err)
			require.NoError(t, <-played)
			require.Equal(t, own, ours.Writes())
			require.Equal(t, theirs, connected)
			require.Equal(t, toolstest.Recorded(msgs, !client)[0], theirs.line())
			require.True(t, strings.HasPrefix(gidText(theirs.gid), "::ffff:10.77.0.1"))
		}
	}
}

// Whatever a peer says, the answer is an error that tells what is wrong.
func TestHostileExchanges(t *testing.T) {
	good := (&dest{qpn: 1, psn: 2, gid: tools.GID(netip.MustParseAddr("10.0.0.1"))}).line()
	for name, c := range map[string]struct {
		says string
		want string
	}{
		"nothing":         {"", "closed the connection after 0 of 52"},
		"cut short":       {string(good[:51]), "closed the connection after 51 of 52"},
		"no NUL":          {string(good[:51]) + "x", "is no line of the form"},
		"no hex":          {strings.Replace(string(good), "000001", "00x001", 1), "invalid syntax"},
		"a sign":          {strings.Replace(string(good), "000001", "+00001", 1), "invalid syntax"},
		"no hex GID":      {strings.Replace(string(good), "ffff", "gggg", 1), "invalid byte"},
		"other fields":    {strings.Replace(string(good), ":", "0", 1), "is no line of the form"},
		"garbage":         {strings.Repeat("\xff", 4096), "is no line of the form"},
		"another end":     {string(good) + "over\x00", `got "over\x00", not "done\x00"`},
		"never an end":    {string(good), "closed the connection after 0 of 5"},
		"a web browser":   {"GET / HTTP/1.1\r\nHost: localhost:18515\r\nUser-Agent: x\r\n\r\n", "is no line of the form"},
		"a longer one":    {strings.Repeat("0", 52), "is no line of the form"},
		"only separators": {strings.Repeat(":", 51) + "\x00", "is no line of the form"},
	} {
		ours, peer := toolstest.Connection(t)
		_, err := peer.Write([]byte(c.says))
		require.NoError(t, err)
		require.NoError(t, peer.(*net.TCPConn).CloseWrite())
		_, err = exchange(t.Context(), tools.NewConn(ours, 10*time.Second), false, dest{}, func(dest) error { return nil })
		require.ErrorIs(t, err, tools.ErrExchange, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// A peer that says nothing is given up in time.
func TestSilentPeer(t *testing.T) {
	for _, client := range []bool{true, false} {
		ours, _ := toolstest.Connection(t)
		_, err := exchange(t.Context(), tools.NewConn(ours, 50*time.Millisecond), client, dest{}, nil)
		require.ErrorIs(t, err, tools.ErrSilent)
	}
	ours, _ := toolstest.Connection(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := exchange(ctx, tools.NewConn(ours, time.Hour), false, dest{}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestGIDs(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd77::1")
	for _, a := range []netip.Addr{v4, v6} {
		got, err := tools.AddrOfGID(tools.GID(a), a)
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	for want, c := range map[string][2]netip.Addr{
		"named no GID":           {netip.IPv6Unspecified(), v4},
		"choose the same IP":     {v6, v4},
		"no address of one host": {netip.MustParseAddr("224.0.0.1"), v4},
		"GID is 10.0.0.1":        {v4, v6},
	} {
		_, err := tools.AddrOfGID(tools.GID(c[0]), c[1])
		require.ErrorContains(t, err, want)
	}
}

func FuzzParseDest(f *testing.F) {
	f.Add((&dest{qpn: 1, psn: 2}).line())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDest(b)
		if err != nil {
			return
		}
		again, err := parseDest(d.line())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
