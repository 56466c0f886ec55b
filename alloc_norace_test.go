//go:build !race

package hixl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// What an application writes down to post stays on its stack: entries, inline
// data, the request itself, and the completions it polls.
func TestPostingAllocatesNothing(t *testing.T) {
	a, b := newEnd(t, at("127.88.26.1"), hixl.QPConfig{SignalAll: true}), newEnd(t, at("127.88.26.2"), hixl.QPConfig{})
	connect(t, a, b, hixl.ConnectOptions{})
	once := func() {
		word := hixl.Word(7)
		sge := [...]hixl.SGE{a.mem.SGE(0, 100)}
		err := a.qp.PostSend(
			hixl.SendWR{Op: hixl.OpWrite, SGE: sge[:], RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey()},
			hixl.SendWR{Op: hixl.OpWrite, Inline: word[:], RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey()},
			hixl.SendWR{Op: hixl.OpAtomicWrite, Inline: word[:], RemoteAddr: b.mem.Addr(), RKey: b.mem.RKey()},
		)
		if err != nil || b.qp.PostRecv() != nil {
			t.Fatal(err)
		}
		for have := 0; have < 3; {
			var done [4]hixl.Completion
			_, _ = b.cq.Poll(done[:]) // lets the other NIC run: there is one processor here
			n, err := a.cq.Poll(done[:])
			if err != nil {
				t.Fatal(err)
			}
			have += n
		}
	}
	for range 50 {
		once()
	}
	require.Zero(t, testing.AllocsPerRun(200, once))
}

// A transfer that is waited for makes no garbage, however its pieces are written
// down; one that is not makes its handle.
func TestTransfersAllocateNothing(t *testing.T) {
	a, b, peer, _ := couple(t, "127.88.27", hixl.PeerConfig{})
	near, far := alloc(t, a, 4096), alloc(t, b, 4096)
	remote, err := peer.Import(b.Describe(far))
	require.NoError(t, err)
	ctx := context.Background()
	piece := hixl.Desc{Local: near, Remote: remote, Len: 64}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		once    func()
		handles float64
	}{
		"write":   {once: func() { check(peer.Write(ctx, piece)) }},
		"read":    {once: func() { check(peer.Read(ctx, piece, hixl.Ordered)) }},
		"several": {once: func() { check(peer.Transfer(ctx, hixl.Write, []hixl.Desc{piece, piece, piece})) }},
		"atomic":  {once: func() { _, err := peer.FetchAdd(ctx, remote, 8, 1); check(err) }},
		"store":   {once: func() { check(peer.AtomicStore(ctx, remote, 8, 1)) }},
		"begun": {once: func() {
			h, err := peer.WriteAsync(piece)
			check(err)
			check(h.Wait(ctx))
		}, handles: 1},
	} {
		for range 50 {
			c.once()
		}
		require.Equal(t, c.handles, testing.AllocsPerRun(200, c.once), name)
	}
}
