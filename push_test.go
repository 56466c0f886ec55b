package hixl_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// Unsignaled writes, gathered or not, do what the same writes would do one by one,
// in their order.
func TestPushIsTransparent(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := hixl.PeerConfig{SendQueue: 16, Seed: seed + 1, Coalesce: hixl.CoalesceConfig{Off: seed%4 == 3, Count: 40}}
			w := newWorld(t, 2, sim.Config{Seed: seed, Link: bad}, cfg)
			p := w.peer(0, 1)
			r := w.remote(p, 1)
			rng := rand.New(rand.NewPCG(seed, 1))
			want := make([]byte, 8192)
			scratch := w.mem[0].Bytes()
			at := 0
			for i := range 600 {
				n := 1 + rng.IntN(100)
				if rng.IntN(20) == 0 {
					n = 600 + rng.IntN(1000) // not gathered
				}
				if rng.IntN(3) == 0 {
					at = rng.IntN(8192)
				}
				at %= 8192 - n
				from := uint64(16384 + i%200*100)
				if n > 512 {
					from = uint64(i%8) * 2048
				}
				if n > 512 || i%200 == 0 { // the memory is used again
					h, err := p.FlushAsync()
					w.wait(h, err)
				}
				b := scratch[from : from+uint64(n)]
				for j := range b {
					b[j] = byte(rng.Uint32())
				}
				copy(want[at:], b)
				require.NoError(t, p.Push(hixl.Desc{Local: w.mem[0], LocalOff: from, Remote: r, RemoteOff: uint64(at), Len: uint64(n)}))
				if n <= 512 && !cfg.Coalesce.Off && p.State() == hixl.PeerUp {
					clear(b) // it was copied
				}
				at += n
				if rng.IntN(50) == 0 {
					w.pass(time.Millisecond)
				}
			}
			h, err := p.FlushAsync()
			w.wait(h, err)
			require.True(t, bytes.Equal(want, w.mem[1].Bytes()[:8192]))
			if s := w.all[0].Stats(); cfg.Coalesce.Off {
				require.Zero(t, s.Coalesced)
			} else {
				require.Less(t, s.CoalescedPosts, s.Coalesced)
			}
		})
	}
}

// What is gathered goes by itself after a while, and before anything else.
func TestPushGoes(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: 10 * time.Microsecond}}, hixl.PeerConfig{})
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	h, err := p.FlushAsync()
	require.NoError(t, err)
	require.NoError(t, h.Err(), "nothing to wait for")
	w.wait(p.FetchAddAsync(r, 1024, 0))
	require.NoError(t, p.Push(hixl.Desc{Inline: []byte("by itself"), Remote: r}))
	require.Zero(t, w.mem[1].Bytes()[0])
	w.pass(200 * time.Microsecond)
	require.Equal(t, "by itself", string(w.mem[1].Bytes()[:9]))

	require.NoError(t, p.Push(hixl.Desc{Inline: []byte("before"), Remote: r}))
	w.wait(p.FetchAddAsync(r, 1024, 1, hixl.Ordered))
	require.Equal(t, "before", string(w.mem[1].Bytes()[:6]))
}

// A failed unsignaled write is told by the next Flush, once.
func TestPushFails(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: 10 * time.Microsecond}}, hixl.PeerConfig{})
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	w.wait(p.FetchAddAsync(r, 1024, 1))
	require.NoError(t, w.mem[1].Deregister(t.Context())) // nobody tells: it has no name
	require.NoError(t, p.Push(hixl.Desc{Inline: []byte("lost"), Remote: r}))
	h, err := p.FlushAsync()
	require.NoError(t, err)
	w.until(time.Minute, w.done(h))
	var e *hixl.TransferError
	require.ErrorAs(t, h.Err(), &e)
	require.ErrorIs(t, e, hixl.ErrStale)
	require.Equal(t, hixl.Write, e.Op)
	require.False(t, e.Retriable)
	require.Zero(t, e.Arrived)
	w.until(time.Minute, func() bool { return p.State() == hixl.PeerUp })
	h, err = p.FlushAsync()
	w.wait(h, err)
}

// Behind a Fence nothing begins before everything has completed, on any queue
// pair: the last value is the last written.
func TestFence(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, 2, sim.Config{Seed: seed, Link: bad}, hixl.PeerConfig{QPs: 4, Seed: seed + 1})
		p := w.peer(0, 1)
		r := w.remote(p, 1)
		for i := range uint64(40) {
			binary.NativeEndian.PutUint64(w.mem[0].Bytes()[i*1024:], i)
			for at := range uint64(4) { // over several queue pairs
				_, err := p.WriteAsync(hixl.Desc{Local: w.mem[0], LocalOff: i * 1024, Remote: r, RemoteOff: at * 1024, Len: 1024})
				require.NoError(t, err)
			}
			require.NoError(t, p.Fence())
		}
		h, err := p.FlushAsync()
		w.wait(h, err)
		for at := range 4 {
			require.EqualValues(t, 39, binary.NativeEndian.Uint64(w.mem[1].Bytes()[at*1024:]))
		}
		w.halt(0)
		w.halt(1)
	}
}
