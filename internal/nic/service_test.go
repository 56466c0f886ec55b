package nic_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/transport/sim"
)

// clockwork is a service that counts its runs.
type clockwork struct {
	at   mono.Time
	runs []mono.Time
}

func (c *clockwork) Deadline() mono.Time { return c.at }

func (c *clockwork) Run(now mono.Time) bool {
	c.runs = append(c.runs, now)
	c.at = 0
	return true
}

// A service runs when it is due and when it is woken, and no more.
func TestService(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 1})
	n := f.NICs[0]
	s := &clockwork{at: f.Now().Add(time.Second)}
	n.Attach(s)
	require.Equal(t, n.Now(), n.Next(), "attaching wakes")
	require.True(t, n.Poll(n.Now()))
	require.False(t, n.Poll(n.Now()))
	require.Len(t, s.runs, 1)
	s.at = f.Now().Add(time.Second)
	due := s.at
	require.Equal(t, due, n.Next())
	f.Net.Advance(due - 1)
	require.False(t, n.Poll(n.Now()))
	f.Net.Advance(due)
	require.True(t, n.Poll(n.Now()))
	require.Equal(t, due, s.runs[1])
	require.Zero(t, n.Next())
	n.Wake()
	require.Equal(t, n.Now(), n.Next())
	require.True(t, n.Poll(n.Now()))
	require.False(t, n.Poll(n.Now()))
	require.Len(t, s.runs, 3)
}

// alarm is a service of a started NIC.
type alarm struct {
	at   atomic.Int64
	runs chan mono.Time
}

func (a *alarm) Deadline() mono.Time { return mono.Time(a.at.Load()) }

func (a *alarm) Run(now mono.Time) bool {
	if at := a.at.Load(); at != 0 && now >= mono.Time(at) {
		a.at.Store(0)
	}
	a.runs <- now
	return true
}

func TestServiceOfStartedNIC(t *testing.T) {
	conn, err := sim.New(sim.Config{}).Host(nictest.Addr(0, false))
	require.NoError(t, err)
	n, err := nic.Open(nic.Config{Conn: conn})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	n.Start()
	a := &alarm{runs: make(chan mono.Time, 10)}
	n.Attach(a)
	<-a.runs
	at := n.Now().Add(20 * time.Millisecond)
	a.at.Store(int64(at))
	n.Wake() // the deadline has changed
	early := 0
	for now := <-a.runs; now < at; now = <-a.runs {
		early++
	}
	require.LessOrEqual(t, early, 1, "woken once, unless that was late already")
}
