package nic_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

func two(t *testing.T) *nictest.Fabric {
	return nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}}})
}

// events takes the events that wait.
func events(e *nictest.End) []qp.EventType {
	var got []qp.EventType
	for {
		select {
		case ev := <-e.NIC.Events():
			got = append(got, ev.Type)
		default:
			return got
		}
	}
}

// §4.14: what the peer says of a request it does not carry out, and what becomes
// of both queue pairs.
func TestRemoteErrors(t *testing.T) {
	tests := []struct {
		name   string
		pair   nictest.PairConfig
		post   func(local, remote *mr.Region) qp.SendWR
		recv   int // bytes of a receive posted, 0 for none
		status cq.Status
		theirs cq.Status // of the receive, if one was posted
	}{
		{"bad rkey, WRITE", nictest.PairConfig{}, func(l, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{l.SGE(0, 64)}, RemoteAddr: r.Addr(), RKey: r.RKey() + 1}
		}, 0, cq.StatusRemoteAccess, 0},
		{"lkey for rkey, READ", nictest.PairConfig{}, func(l, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpRead, SGE: []mr.SGE{l.SGE(0, 64)}, RemoteAddr: r.Addr(), RKey: r.LKey()}
		}, 0, cq.StatusRemoteAccess, 0},
		{"out of bounds, WRITE", nictest.PairConfig{}, func(l, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{l.SGE(0, 64)}, RemoteAddr: r.Addr() + r.Len() - 63, RKey: r.RKey()}
		}, 0, cq.StatusRemoteAccess, 0},
		{"misaligned atomic", nictest.PairConfig{}, func(l, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpFetchAdd, SGE: []mr.SGE{l.SGE(0, 8)}, RemoteAddr: r.Addr() + 4, RKey: r.RKey()}
		}, 0, cq.StatusRemoteInvalid, 0},
		{"operation not enabled", nictest.PairConfig{Access: mr.RemoteRead}, func(l, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{l.SGE(0, 64)}, RemoteAddr: r.Addr(), RKey: r.RKey()}
		}, 0, cq.StatusRemoteInvalid, 0},
		{"receive too short", nictest.PairConfig{}, func(l, _ *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpSend, SGE: []mr.SGE{l.SGE(0, 65)}}
		}, 64, cq.StatusRemoteInvalid, cq.StatusLocalLength},
		{"receive too short, several packets", nictest.PairConfig{}, func(l, _ *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpSend, SGE: []mr.SGE{l.SGE(0, 10000)}}
		}, 9999, cq.StatusRemoteInvalid, cq.StatusLocalLength},
		{"no receive, no retries", nictest.PairConfig{RNRRetry: -1}, func(l, _ *mr.Region) qp.SendWR {
			return qp.SendWR{Op: wr.OpSend, SGE: []mr.SGE{l.SGE(0, 64)}}
		}, 0, cq.StatusRNRRetryExceeded, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := two(t)
			a, b := f.Pair(0, 1, tt.pair)
			local, remote := a.Region(1<<16), b.Region(1<<16)
			if tt.recv > 0 {
				b.Receive(qp.RecvWR{ID: 50, SGE: []mr.SGE{remote.SGE(0, uint32(tt.recv))}})
			}
			req := tt.post(local, remote)
			req.ID = 7
			a.Post(req) // unsignaled: an error is never silent
			a.Post(qp.SendWR{ID: 8, Op: wr.OpWrite, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
			f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 2 })
			got := a.Take(a.Send)
			require.Equal(t, uint64(7), got[0].WRID)
			require.Equal(t, tt.status, got[0].Status, "%v", got[0].Err())
			require.Equal(t, b.NIC.Addr(), got[0].Peer)
			require.ErrorIs(t, got[0].Err(), tt.status.Sentinel())
			require.Equal(t, uint64(8), got[1].WRID)
			require.ErrorIs(t, got[1].Err(), cq.ErrFlushed)
			require.Equal(t, qp.Err, a.State())
			require.Empty(t, events(a), "the completion tells")
			if tt.status == cq.StatusRNRRetryExceeded {
				require.Equal(t, qp.RTS, b.State())
				return
			}
			require.Equal(t, qp.Err, b.State())
			require.Contains(t, events(b), qp.EventQPFatal)
			if tt.recv > 0 {
				require.Equal(t, tt.theirs, one(t, f, b, b.Recv).Status)
			}
		})
	}
}

// A receive that comes late is waited for; nothing is lost or doubled.
func TestReceiverNotReady(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(64), b.Region(64)
	a.Post(qp.SendWR{Op: wr.OpSend, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 64)}})
	f.Run(5 * time.Millisecond)
	require.Zero(t, a.Send.Len())
	require.Greater(t, a.Stats().RNRsReceived, uint64(1))
	b.Receive(qp.RecvWR{ID: 3, SGE: []mr.SGE{remote.SGE(0, 64)}})
	success(t, f, a, a.Send)
	require.Equal(t, uint64(3), success(t, f, b, b.Recv).WRID)
}

// A silent peer: (retry_cnt+1) timeouts, then a typed error with its name.
func TestSilentPeer(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{Retry: 3, Timeout: 10}) // 4.2 ms
	f.Net.Cut(a.NIC.Addr(), b.NIC.Addr())
	start := f.Now()
	for i := range uint64(3) {
		a.Post(qp.SendWR{ID: i, Op: wr.OpWrite})
	}
	f.RunUntil(4*4*rc.AckTimeout(10), func() bool { return a.Send.Len() == 3 })
	require.GreaterOrEqual(t, f.Now().Sub(start), 4*rc.AckTimeout(10))
	got := a.Take(a.Send)
	require.ErrorIs(t, got[0].Err(), cq.ErrRetryExceeded)
	require.ErrorContains(t, got[0].Err(), b.NIC.Addr().String())
	for i := 1; i < 3; i++ {
		require.Equal(t, uint64(i), got[i].WRID)
		require.ErrorIs(t, got[i].Err(), cq.ErrFlushed)
	}
}

// §3.17: by Modify to ERR everything is flushed in order, and what is posted
// afterwards too.
func TestFlush(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	f.Net.Cut(a.NIC.Addr(), b.NIC.Addr())
	for i := range uint64(5) {
		a.Receive(qp.RecvWR{ID: 100 + i})
		a.Post(qp.SendWR{ID: i, Op: wr.OpWrite})
	}
	require.NoError(t, a.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	a.Post(qp.SendWR{ID: 5, Op: wr.OpWrite})
	a.Receive(qp.RecvWR{ID: 105})
	sends, recvs := a.Take(a.Send), a.Take(a.Recv)
	require.Len(t, sends, 6)
	require.Len(t, recvs, 6)
	for i := range 6 {
		require.Equal(t, uint64(i), sends[i].WRID)
		require.Equal(t, uint64(100+i), recvs[i].WRID)
		require.ErrorIs(t, sends[i].Err(), cq.ErrFlushed)
		require.ErrorIs(t, recvs[i].Err(), cq.ErrFlushed)
	}
	require.Equal(t, []uint64{0, 0}, []uint64{uint64(a.Send.Len()), uint64(a.Recv.Len())})

	// RESET leaves it, and the queue pair works again under its old number.
	require.NoError(t, a.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	require.NoError(t, b.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	f.Net.HealAll()
	cfg := nictest.PairConfig{Access: qp.RemoteAccess, PSN: [2]roce.PSN{0xFFFFFE, 5}}
	for _, e := range []*nictest.End{a, b} {
		e.ToInit(cfg)
	}
	a.Connect(b, cfg, 0)
	b.Connect(a, cfg, 1)
	a.Post(qp.SendWR{ID: 9, Op: wr.OpWrite, Flags: wr.Signaled})
	require.Equal(t, uint64(9), success(t, f, a, a.Send).WRID)
}

// The receive queue is flushed only when no byte can land in its buffers any
// more: memory that finishes late holds the completions back.
func TestFlushWaitsForLateMemory(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	late := f.Late(devicetest.LateConfig{Size: 8192, MaxDelay: time.Hour})
	local, remote := a.Region(8192), b.Register(late)
	for i := range uint64(3) {
		b.Receive(qp.RecvWR{ID: i, SGE: []mr.SGE{remote.SGE(0, 8192)}})
	}
	a.Post(qp.SendWR{Op: wr.OpSend, SGE: []mr.SGE{local.SGE(0, 8192)}})
	for late.Pending() < 2 {
		require.True(t, f.Step())
	}
	require.NoError(t, b.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	f.Settle()
	require.Zero(t, b.Recv.Len(), "its buffer is still being written")
	f.RunUntil(3*time.Hour, func() bool { return b.Recv.Len() == 3 })
	require.Zero(t, late.Pending())
	for i, c := range b.Take(b.Recv) {
		require.Equal(t, uint64(i), c.WRID)
		require.ErrorIs(t, c.Err(), cq.ErrFlushed)
	}
}

// Deregister revokes at once: the peer of a transfer in progress gets an access
// error, and when it returns no byte is touched any more.
func TestDeregisterDuringTransfer(t *testing.T) {
	t.Run("target", func(t *testing.T) {
		f := two(t)
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(4<<20), b.Region(4<<20)
		copy(local.Bytes(), random(1, 4<<20))
		a.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(0, 4<<20)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		for range 3 {
			f.Step()
		}
		require.NoError(t, remote.Deregister(context.Background()))
		before := bytes.Clone(remote.Bytes())
		require.ErrorIs(t, ptr(one(t, f, a, a.Send)).Err(), cq.ErrRemoteAccess)
		require.True(t, bytes.Equal(before, remote.Bytes()))
	})
	t.Run("source of a READ", func(t *testing.T) {
		f := two(t)
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(4<<20), b.Region(4<<20)
		a.Post(qp.SendWR{Op: wr.OpRead, SGE: []mr.SGE{local.SGE(0, 4<<20)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		for range 4 {
			f.Step()
		}
		require.NoError(t, remote.Deregister(context.Background()))
		require.ErrorIs(t, ptr(one(t, f, a, a.Send)).Err(), cq.ErrRemoteAccess)
	})
	t.Run("source of a WRITE", func(t *testing.T) {
		f := two(t)
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(4<<20), b.Region(4<<20)
		a.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(0, 4<<20)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		require.NoError(t, local.Deregister(context.Background()))
		require.ErrorIs(t, ptr(one(t, f, a, a.Send)).Err(), cq.ErrLocalProtection)
	})
	t.Run("late memory", func(t *testing.T) {
		f := two(t)
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		late := f.Late(devicetest.LateConfig{Size: 4 << 20, MaxDelay: 20 * time.Millisecond})
		local, remote := a.Region(4<<20), b.Register(late)
		a.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(0, 4<<20)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		for late.Pending() == 0 {
			f.Step()
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, remote.Deregister(ended), mr.ErrBusy, "bytes are on their way")
		require.ErrorIs(t, ptr(one(t, f, a, a.Send)).Err(), cq.ErrRemoteAccess)
		f.RunUntil(time.Minute, func() bool { return late.Pending() == 0 })
		f.Settle()
		require.NoError(t, remote.Deregister(context.Background()))
		require.Zero(t, remote.Lent())
	})
}

func ptr[T any](v T) *T { return &v }

// Memory that fails: the peer of a placement or READ gets a remote operation
// error, the owner of a source a local one.
func TestFailingMemory(t *testing.T) {
	broken := devicetest.LateConfig{Size: 1 << 16, ErrorRate: 1, MaxDelay: 20 * time.Microsecond}
	for _, tt := range []struct {
		name   string
		op     wr.Op
		local  bool // the broken memory is the requester's
		status cq.Status
	}{
		{"target of a WRITE", wr.OpWrite, false, cq.StatusRemoteOperation},
		{"source of a READ", wr.OpRead, false, cq.StatusRemoteOperation},
		{"atomic", wr.OpFetchAdd, false, cq.StatusRemoteOperation},
		{"source of a WRITE", wr.OpWrite, true, cq.StatusLocalQPOperation},
		{"target of a READ", wr.OpRead, true, cq.StatusLocalQPOperation},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := two(t)
			a, b := f.Pair(0, 1, nictest.PairConfig{})
			late := f.Late(broken)
			var local, remote *mr.Region
			if tt.local {
				local, remote = a.Register(late), b.Region(1<<16)
			} else {
				local, remote = a.Region(1<<16), b.Register(late)
			}
			n := uint32(1 << 16)
			if tt.op.Atomic() {
				n = 8
			}
			a.Post(qp.SendWR{Op: tt.op, SGE: []mr.SGE{local.SGE(0, n)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
			require.Equal(t, tt.status, one(t, f, a, a.Send).Status)
			f.RunUntil(time.Minute, func() bool { return late.Pending() == 0 })
			f.Settle()
			require.Zero(t, local.Lent()+remote.Lent(), "nothing stays lent")
		})
	}
}

// A wrong call is refused at once, with what is wrong.
func TestPostErrors(t *testing.T) {
	f := two(t)
	a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{MaxSendWR: 4, MaxRecvWR: 2, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 32}})
	r, other := a.Region(64), b.Region(64)
	ok := r.SGE(0, 8)
	many := []mr.SGE{ok, ok, ok}
	tests := []struct {
		name string
		wr   qp.SendWR
		want error
		says string
	}{
		{"unknown lkey", qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{ok, {Addr: 1, Length: 1, LKey: 12345}}}, mr.ErrKey, "entry 1"},
		{"rkey for lkey", qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{{Addr: r.Addr(), Length: 1, LKey: r.RKey()}}}, mr.ErrKey, "other kind"},
		{"other NIC's lkey", qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{other.SGE(0, 1)}}, mr.ErrKey, "entry 0"},
		{"too long", qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{r.SGE(0, 65)}}, mr.ErrBounds, "64 bytes"},
		{"too many entries", qp.SendWR{Op: wr.OpSend, SGE: many}, qp.ErrWorkRequest, "3 scatter/gather entries"},
		{"inline too long", qp.SendWR{Op: wr.OpSend, Inline: make([]byte, 33)}, qp.ErrWorkRequest, "at most 32"},
		{"inline READ", qp.SendWR{Op: wr.OpRead, Inline: make([]byte, 3)}, qp.ErrWorkRequest, "READ"},
		{"both", qp.SendWR{Op: wr.OpSend, Inline: make([]byte, 3), SGE: many[:1]}, qp.ErrWorkRequest, "one of the two"},
		{"atomic of 4 bytes", qp.SendWR{Op: wr.OpFetchAdd, SGE: []mr.SGE{r.SGE(0, 4)}}, wr.ErrRequest, "8"},
		{"no such operation", qp.SendWR{Op: 99}, qp.ErrWorkRequest, "99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := qp.SendWR{Op: wr.OpWrite}
			tt.wr.ID = 77
			err := a.PostSend([]qp.SendWR{good, tt.wr, good})
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			var post *qp.PostError
			require.True(t, errors.As(err, &post))
			require.Equal(t, 1, post.Index)
			require.Equal(t, uint64(77), post.WRID)
			f.RunUntil(time.Minute, func() bool { n, _ := a.Outstanding(); return n == 0 })
			require.Zero(t, a.Send.Len())
		})
	}
	t.Run("queues full", func(t *testing.T) {
		f.Net.Cut(a.NIC.Addr(), b.NIC.Addr())
		w := make([]qp.SendWR, 5)
		for i := range w {
			w[i].Op = wr.OpWrite
		}
		err := a.PostSend(w)
		require.ErrorIs(t, err, wr.ErrSendQueueFull)
		require.ErrorContains(t, err, "work request 4")
		require.ErrorIs(t, a.PostRecv(make([]qp.RecvWR, 3)), qp.ErrRecvQueueFull)
		require.ErrorIs(t, a.PostRecv([]qp.RecvWR{{SGE: many}}), qp.ErrWorkRequest)
	})
	t.Run("READ only into writable memory", func(t *testing.T) {
		ro, err := a.PD.Register(r.Memory(), mr.Options{})
		require.NoError(t, err)
		require.ErrorIs(t, a.PostSend([]qp.SendWR{{Op: wr.OpRead, SGE: []mr.SGE{ro.SGE(0, 8)}}}), mr.ErrPermission)
		require.ErrorIs(t, b.PostRecv([]qp.RecvWR{{SGE: []mr.SGE{ro.SGE(0, 8)}}}), mr.ErrKey)
	})
}
