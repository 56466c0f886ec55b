package hixl_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// slow is a network in which packets may come seconds late, out of order and twice.
var slow = sim.Link{Delay: time.Millisecond, Jitter: time.Second, Reorder: 0.5, ReorderBy: 8 * time.Second, Duplicate: 0.3, Loss: 0.05}

// After a write is fenced no byte of it lands, however late its packets come.
func TestCancelWrite(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 2, sim.Config{Seed: seed, Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{Seed: seed + 1})
			p := w.peer(0, 1)
			r := w.remote(p, 1)
			w.wait(p.FetchAddAsync(r, 0, 1))
			w.net.SetDefaultLink(slow)
			for i := range w.mem[0].Bytes() {
				w.mem[0].Bytes()[i] = 0xAA
			}
			h, err := p.WriteAsync(hixl.Desc{Local: w.mem[0], LocalOff: 8, Remote: r, RemoteOff: 8, Len: 60000})
			require.NoError(t, err)
			other, err := p.WriteAsync(hixl.Desc{Inline: []byte{1}, Remote: r, RemoteOff: 63000})
			require.NoError(t, err)
			w.pass(time.Duration(seed) * 300 * time.Millisecond)
			h.StartCancel()
			if !h.Fenced() {
				err := h.WaitFenced(over())
				require.ErrorIs(t, err, hixl.ErrUnfenced)
				require.ErrorIs(t, err, hixl.ErrCanceled)
			}
			w.until(10*time.Minute, h.Fenced)
			for i := range w.mem[0].Bytes() { // it is ours again
				w.mem[0].Bytes()[i] = 0xBB
			}
			at := bytes.Clone(w.mem[1].Bytes()[8:60008])
			w.pass(time.Minute)
			require.True(t, bytes.Equal(at, w.mem[1].Bytes()[8:60008]), "nothing landed any more")
			require.False(t, bytes.Contains(at, []byte{0xBB}))
			if h.Err() != nil {
				require.ErrorIs(t, h.Err(), hixl.ErrCanceled)
				var e *hixl.TransferError
				require.ErrorAs(t, h.Err(), &e)
				require.LessOrEqual(t, e.Arrived, uint64(bytes.Count(at, []byte{0xAA})), "no more is claimed than is there")
				w.until(time.Minute, w.done(other))
				if other.Err() != nil {
					require.ErrorIs(t, other.Err(), hixl.ErrAborted)
					require.ErrorAs(t, other.Err(), &e)
					require.True(t, e.Retriable)
				}
			}
			w.net.SetDefaultLink(sim.Link{Delay: time.Millisecond})
			w.wait(p.WriteAsync(hixl.Desc{Inline: []byte{2}, Remote: r, RemoteOff: 63000}))
		})
	}
}

// A read is fenced at once: its memory is the caller's again, though the peer goes
// on sending.
func TestCancelRead(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, 2, sim.Config{Seed: seed, Link: bad}, hixl.PeerConfig{Seed: seed + 1})
		p := w.peer(0, 1)
		r := w.remote(p, 1)
		w.wait(p.FetchAddAsync(r, 0, 1))
		for i := range w.mem[1].Bytes() {
			w.mem[1].Bytes()[i] = 0xCC
		}
		h, err := p.ReadAsync(hixl.Desc{Local: w.mem[0], Remote: r, Len: 65536})
		require.NoError(t, err)
		w.pass(time.Duration(seed) * 50 * time.Microsecond)
		require.NoError(t, h.Cancel(over()), "at once")
		require.True(t, h.Fenced())
		if h.Err() != nil {
			require.ErrorIs(t, h.Err(), hixl.ErrCanceled)
		}
		clear(w.mem[0].Bytes())
		w.pass(time.Minute)
		require.Zero(t, bytes.Count(w.mem[0].Bytes(), []byte{0xCC}))
		require.EqualValues(t, 1, p.Generation(), "nobody else was hurt")
		w.wait(p.ReadAsync(hixl.Desc{Local: w.mem[0], Remote: r, Len: 65536}))
		require.Equal(t, 65536, bytes.Count(w.mem[0].Bytes(), []byte{0xCC}))
		w.halt(0)
		w.halt(1)
	}
}

// What was not posted is dropped; a silent peer is unfenced until it speaks.
func TestCancelSilent(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{QPs: 1, SendQueue: 2, Recovery: hixl.RecoveryConfig{GiveUp: hixl.None}})
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	early, err := p.WriteAsync(hixl.Desc{Inline: []byte{1}, Remote: r})
	require.NoError(t, err)
	require.NoError(t, early.Cancel(over()), "never posted")
	require.ErrorIs(t, early.Err(), hixl.ErrCanceled)
	w.wait(p.FetchAddAsync(r, 0, 1))

	w.net.Cut(simAddr(0), simAddr(1))
	var list []hixl.Desc
	for i := range uint64(10) {
		list = append(list, hixl.Desc{Inline: []byte{9}, Remote: r, RemoteOff: 100 + i})
	}
	h, err := p.TransferAsync(hixl.Write, list)
	require.NoError(t, err)
	h.StartCancel()
	w.pass(5 * time.Minute)
	require.False(t, h.Fenced(), "the peer might have received it")
	require.ErrorIs(t, h.WaitFenced(over()), hixl.ErrUnfenced)
	var e *hixl.TransferError
	require.ErrorAs(t, h.Err(), &e)
	require.False(t, e.Fenced)
	require.EqualValues(t, 10, e.Total)
	w.net.Heal(simAddr(0), simAddr(1))
	w.until(time.Minute, h.Fenced)
	require.NoError(t, h.WaitFenced(over()))
}

// The end of a call's context is a cancel.
func TestDeadline(t *testing.T) {
	ctx := soon(t)
	a, b, toB, _ := couple(t, "127.88.47", hixl.PeerConfig{})
	local, far := alloc(t, a, 64<<20), alloc(t, b, 64<<20)
	remote, err := toB.Import(b.Describe(far))
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	err = toB.Read(short, hixl.Desc{Local: local, Remote: remote, Len: 64 << 20})
	require.ErrorIs(t, err, short.Err())
	require.NotErrorIs(t, err, hixl.ErrUnfenced)
	var e *hixl.TransferError
	for e == nil || e.Handle == nil { // where time was up before it began there is none
		short, cancel = context.WithTimeout(ctx, time.Millisecond)
		err = toB.Write(short, hixl.Desc{Local: local, Remote: remote, Len: 64 << 20})
		cancel()
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, e.Handle.WaitFenced(ctx))
}
