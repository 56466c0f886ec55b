package nic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// Long messages from memory that finishes late and memory that does not, in turns: what
// leaves together waits for what it must not overtake, both ways.
func TestRunsBehindLateMemory(t *testing.T) {
	eachFabric(t, func(t *testing.T, f *nictest.Fabric) {
		a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{MaxSendSGE: 3}})
		const part = 100_000
		late := a.Register(f.Late(devicetest.LateConfig{Size: part, Seed: 3, MaxDelay: 30 * time.Microsecond}))
		direct, remote := a.Region(2*part), b.Region(3*part)
		want := random(9, 3*part)
		copy(direct.Bytes(), want[:part])
		copy(direct.Bytes()[part:], want[2*part:])
		copy(remote.Bytes(), want[part:2*part])
		a.Post(qp.SendWR{ // the late part comes from the other side
			Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{late.SGE(0, part)}, RemoteAddr: remote.Addr(), RKey: remote.RKey(),
		})
		success(t, f, a, a.Send)

		pieces := []mr.SGE{direct.SGE(0, part), late.SGE(0, part), direct.SGE(part, part)}
		a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: pieces, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		success(t, f, a, a.Send)
		require.Equal(t, want, remote.Bytes())

		clear(remote.Bytes())
		var wrs []qp.SendWR
		for i, sge := range pieces { // and as messages of their own
			at := remote.Addr() + uint64(i)*part
			wrs = append(wrs, qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{sge}, RemoteAddr: at, RKey: remote.RKey()})
		}
		wrs[2].Flags = wr.Signaled
		a.Post(wrs...)
		success(t, f, a, a.Send)
		require.Equal(t, want, remote.Bytes())

		back := b.Region(part)
		for i, r := range []*mr.Region{late, direct} { // READs from either
			clear(back.Bytes())
			b.Post(qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{back.SGE(0, part)}, RemoteAddr: r.Addr(), RKey: r.RKey()})
			success(t, f, b, b.Send)
			require.Equal(t, want[(1-i)*part:][:part], back.Bytes())
		}
	})
}
