package nic_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

// slowMemory is congested while the function says so.
type slowMemory struct {
	*devicetest.Late
	congested func() bool
}

func (m *slowMemory) Congested() bool { return m.congested() }

// Memory that falls behind loses packets, as the network does, and in the end has
// every byte.
func TestCongestedMemory(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1, Link: sim.Link{Delay: 10 * time.Microsecond}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	const size = 300_000
	late := f.Late(devicetest.LateConfig{Size: size, Seed: 1, MaxDelay: 100 * time.Microsecond})
	asked := 0
	to := b.Register(&slowMemory{Late: late, congested: func() bool {
		asked++
		return asked%64 > 40
	}})
	from := a.Region(size)
	for i := range from.Bytes() {
		from.Bytes()[i] = byte(i*7 + i>>9)
	}
	a.Post(qp.SendWR{
		ID: 1, Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{from.SGE(0, size)}, RemoteAddr: to.Addr(), RKey: to.RKey(),
	})
	var done []cq.Completion
	f.RunUntil(time.Minute, func() bool {
		done = append(done, a.Take(a.Send)...)
		return len(done) > 0
	})
	require.NoError(t, done[0].Err())
	require.True(t, bytes.Equal(from.Bytes(), late.Snapshot()))
	require.Positive(t, b.NIC.Stats().Drops[nic.DropMemory])
	require.Positive(t, a.NIC.Stats().RC.Retransmitted)
}

// Memory that stays behind ends the connection in the usual time, and nothing hangs.
func TestMemoryThatStaysCongested(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1, Link: sim.Link{Delay: 10 * time.Microsecond}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	late := f.Late(devicetest.LateConfig{Size: 4096, Seed: 1})
	to := b.Register(&slowMemory{Late: late, congested: func() bool { return true }})
	from := a.Region(4096)
	post := func(id uint64) {
		a.Post(qp.SendWR{ID: id, Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{from.SGE(0, 100)}, RemoteAddr: to.Addr(), RKey: to.RKey()})
	}
	post(1) // the first packet is how the queue pair comes to know the memory
	post(2)
	var done []cq.Completion
	f.RunUntil(10*time.Minute, func() bool {
		done = append(done, a.Take(a.Send)...)
		return len(done) == 2
	})
	require.NoError(t, done[0].Err())
	require.ErrorIs(t, done[1].Err(), cq.ErrRetryExceeded)
}
