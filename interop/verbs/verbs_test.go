package verbs

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

func TestCaseText(t *testing.T) {
	for _, text := range []string{
		"", "op=read size=5001 count=3", "op=send qp=ud family=6 batch=1 wrong-qkey=1", "op=send recv=0 recv-delay=300 rnr-retries=0 offset=-8",
	} {
		c, err := Parse(text)
		require.NoError(t, err)
		again, err := Parse(c.String())
		require.NoError(t, err)
		require.Equal(t, c, again)
		require.Len(t, c.String(), len(text), "nothing but what was given")
	}
	for _, text := range []string{"op=push", "qp=xrc", "family=5", "colour=red", "size", "size=x", "size=-1", "count=0", "size=100000 count=16384"} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrCase, text)
	}
}

func TestResultText(t *testing.T) {
	const text = `wc id=0 status=0 op=1
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=129 len=64 imm=cafe0000
peer wc id=1 status=0 op=128 len=10 inv=right
peer wc id=2 status=5
peer slots final=0 initial=2 mixed=1
`
	r, err := ParseResult(text)
	require.NoError(t, err)
	require.Equal(t, text, r.String())
	require.Equal(t, Slots{0, 2, 1}, r.PeerSlots)
	for _, bad := range []string{"hello\n", "wc id=0\n", "slots final=1\n", "peer wc id=1 status=0 op=128\n"} {
		_, err := ParseResult(bad)
		require.ErrorIs(t, err, ErrResult, bad)
	}
}

func nic(t *testing.T, addr string) *hixl.NIC {
	n, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(addr)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// Both ends are ours, so this shows that they keep the exchange among themselves;
// the lab shows it with the tool.
func TestBothEnds(t *testing.T) {
	tests := []struct {
		text string
		want string
	}{
		{"op=write size=5001 count=2 batch=1", `wc id=0 status=0 op=1
wc id=1 status=0 op=1
slots final=2 initial=0 mixed=0
peer slots final=2 initial=0 mixed=0
`},
		{"op=read size=5001", `wc id=0 status=0 op=2
slots final=1 initial=0 mixed=0
peer slots final=1 initial=0 mixed=0
`},
		{"op=send-imm size=0", `wc id=0 status=0 op=0
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=128 len=0 imm=cafe0000
peer slots final=1 initial=0 mixed=0
`},
		{"op=send-inv", `wc id=0 status=0 op=0
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=128 len=64 inv=right
peer slots final=1 initial=0 mixed=0
`},
		{"op=send srq=1 recv-delay=20 inline=1", `wc id=0 status=0 op=0
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=128 len=64
peer slots final=1 initial=0 mixed=0
`},
		{"op=cas count=3", `wc id=0 status=0 op=3
wc id=1 status=0 op=3
wc id=2 status=0 op=3
slots final=3 initial=0 mixed=0
peer slots final=3 initial=0 mixed=0
`},
		{"op=faa count=2 batch=1", `wc id=0 status=0 op=4
wc id=1 status=0 op=4
slots final=2 initial=0 mixed=0
peer slots final=2 initial=0 mixed=0
`},
		{"op=write-imm qp=uc size=3000", `wc id=0 status=0 op=1
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=129 len=3000 imm=cafe0000
peer slots final=1 initial=0 mixed=0
`},
		{"op=send qp=ud size=13", `wc id=0 status=0 op=0
slots final=1 initial=0 mixed=0
peer wc id=0 status=0 op=128 len=13 grh=right
peer slots final=1 initial=0 mixed=0
`},
		{"op=send qp=ud wrong-qkey=1 patience=20", `wc id=0 status=0 op=0
slots final=1 initial=0 mixed=0
peer slots final=0 initial=1 mixed=0
`},
		{"op=write wrong-key=1", `wc id=0 status=10
slots final=1 initial=0 mixed=0
peer slots final=0 initial=1 mixed=0
`},
		{"op=read offset=64", `wc id=0 status=10
slots final=0 initial=1 mixed=0
peer slots final=1 initial=0 mixed=0
`},
	}
	a, p := nic(t, "127.78.0.1"), nic(t, "127.78.0.2")
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			l, err := net.Listen("tcp", "127.78.0.2:"+Port)
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- Serve(ctx, p, l) }()
			text := tt.text
			if !strings.Contains(text, "patience") { // what is to come comes, however late
				text += " patience=60000"
			}
			c, err := Parse(text)
			require.NoError(t, err)
			r, err := Act(ctx, a, "127.78.0.2", c)
			require.NoError(t, err)
			require.NoError(t, <-served)
			require.NoError(t, l.Close())
			require.Equal(t, tt.want, r.String())
		})
	}
}

// Memory that differs in any byte, slack included, is not called right.
func TestSlotsSeeEveryByte(t *testing.T) {
	c, err := Parse("op=write size=100 count=3")
	require.NoError(t, err)
	m := image{c: &c, b: make([]byte, 3*c.stride())}
	m.fill()
	require.Equal(t, Slots{Initial: 3}, m.slots())
	for i := range c.Count {
		for j := range c.Size {
			m.b[i*c.stride()+j] = pattern(true, i*c.stride()+j)
		}
	}
	require.Equal(t, Slots{Final: 3}, m.slots())
	for i := range m.b {
		m.b[i] ^= 1
		require.Equal(t, Slots{Final: 2, Mixed: 1}, m.slots(), i)
		m.b[i] ^= 1
	}
}

func TestServeStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.78.0.3:0")
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, Serve(ctx, nic(t, "127.78.0.3"), l), context.Canceled)
}

func TestServeRefuses(t *testing.T) {
	n := nic(t, "127.78.0.4")
	for _, line := range []string{"hello\n", "case op=push\n", "case size=100000000\n"} {
		l, err := net.Listen("tcp", "127.78.0.4:0")
		require.NoError(t, err)
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(line))
		require.NoError(t, err)
		require.ErrorIs(t, Serve(t.Context(), n, l), ErrCase)
		require.NoError(t, conn.Close())
		require.NoError(t, l.Close())
	}
}
