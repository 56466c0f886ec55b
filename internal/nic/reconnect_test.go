package nic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// A RESET in the middle of everything forgets everything (§3.17; docs/bugs.md,
// A9): PSNs, MSN, the message in progress, what a NAK was sent for, READs kept for
// duplicates.
func TestReconnect(t *testing.T) {
	f := two(t)
	cfg := nictest.PairConfig{}
	a, b := f.Pair(0, 1, cfg)
	local, remote := a.Region(1<<16), b.Region(1<<16)
	copy(local.Bytes(), random(1, 1<<16))
	for round := range 4 {
		write := qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 1<<16)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()}
		a.Post(write)
		success(t, f, a, a.Send)
		require.Equal(t, local.Bytes(), remote.Bytes())
		a.Post(qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 100)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		success(t, f, a, a.Send)
		a.Post(qp.SendWR{Op: wr.OpSend, SGE: []mr.SGE{local.SGE(0, 10)}}) // finds no receive
		back := qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{remote.SGE(0, 1<<16)}, RemoteAddr: local.Addr(), RKey: local.RKey()}
		b.Post(back, back)
		f.Run(time.Duration(round) * 3 * time.Microsecond) // somewhere on the way

		for _, e := range []*nictest.End{a, b} {
			require.NoError(t, e.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
			e.Take(e.Send)
			e.ToInit(nictest.PairConfig{Access: qp.RemoteAccess})
		}
		clear(remote.Bytes())
		f.Run(time.Second) // packets of the old connection find nobody
		require.Equal(t, make([]byte, 1<<16), remote.Bytes())
		cfg.PSN = [2]roce.PSN{roce.PSN(0xFFFFFF - 7*round), roce.PSN(round)}
		a.Connect(b, cfg, 0)
		b.Connect(a, cfg, 1)
	}
}

// Thousands of connections one after the other, each with other numbers, leave
// nothing behind (docs/bugs.md, R33).
func TestThousandsOfConnections(t *testing.T) {
	f := two(t)
	pds := [2]*mr.PD{f.NICs[0].AllocPD(), f.NICs[1].AllocPD()}
	sink := [2]*cq.Queue{}
	for i := range sink {
		var err error
		sink[i], err = cq.New(16)
		require.NoError(t, err)
	}
	var local, remote *mr.Region
	for i := range 5000 {
		a, b := f.Pair(0, 1, nictest.PairConfig{PDs: pds, QP: qp.Config{SendSink: sink[0], RecvSink: sink[1]}, PSN: [2]roce.PSN{roce.PSN(i) * 3000, 5}})
		if i == 0 {
			local, remote = a.Region(64), b.Region(64)
		}
		local.Bytes()[0] = byte(i)
		a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 64)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		success(t, f, a, sink[0])
		require.Equal(t, byte(i), remote.Bytes()[0])
		a.Close()
		b.Close()
	}
	for _, n := range f.NICs {
		require.Zero(t, n.Stats().QPs)
	}
}
