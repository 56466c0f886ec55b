//go:build !race

package hixl_test

import (
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
