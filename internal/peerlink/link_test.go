package peerlink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

const t0 = mono.Time(time.Second)

var cfg = Config{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond, GiveUp: time.Second}

func newLink(c Config) *Link {
	l := new(Link)
	l.Init(c)
	return l
}

func expire(l *Link, now mono.Time) bool {
	dial, _ := l.Expire(now)
	return dial
}

func TestFirstAttempt(t *testing.T) {
	l := newLink(cfg)
	require.False(t, l.Patient(t0), "nobody dials")
	require.True(t, l.Want())
	require.False(t, l.Want(), "once")
	require.True(t, l.Patient(t0))
	l.Failed(t0, 0)
	require.Equal(t, Idle, l.State(), "whoever wanted it is told")
	require.False(t, l.Patient(t0))
	require.True(t, l.Want(), "and may try again")
	l.Connected()
	require.Equal(t, Up, l.State())
	require.Zero(t, l.Deadline())
}

// A connection that was up is dialed again, at longer and longer intervals, and work
// waits for it until it is given up.
func TestBackOff(t *testing.T) {
	l := newLink(cfg)
	l.Want()
	l.Connected()
	now := t0
	for i, want := range []time.Duration{10, 20, 40, 80, 100, 100} {
		l.Failed(now, uint64(i)*7919)
		pause := l.next.Sub(now)
		require.GreaterOrEqual(t, pause, want*time.Millisecond/2)
		require.LessOrEqual(t, pause, want*time.Millisecond)
		require.False(t, expire(l, l.next-1))
		require.False(t, l.Want(), "its time has not come")
		now = l.next
		require.True(t, expire(l, now))
		require.Equal(t, Dialing, l.State())
	}
	require.True(t, l.Patient(t0.Add(time.Second-1)))
	require.False(t, l.Patient(t0.Add(time.Second)))
	require.Equal(t, t0.Add(time.Second), l.Deadline())
	_, gaveUp := l.Expire(t0.Add(time.Second))
	require.True(t, gaveUp)
	_, gaveUp = l.Expire(t0.Add(2 * time.Second))
	require.False(t, gaveUp, "once")
	l.Connected()
	require.True(t, l.Patient(t0.Add(time.Second)), "it has come back by itself")
	l.Failed(now, 0)
	require.LessOrEqual(t, l.next.Sub(now), 10*time.Millisecond, "the first pause again")
}

func TestPassive(t *testing.T) {
	c := cfg
	c.Passive = true
	l := newLink(c)
	l.Connected()
	l.Failed(t0, 0)
	require.False(t, l.Want())
	require.False(t, expire(l, t0.Add(time.Hour)), "it is the other side's to dial")
	require.True(t, l.Patient(t0))
	require.False(t, l.Patient(t0.Add(time.Second)))
}

func TestOffAndRest(t *testing.T) {
	c := cfg
	c.Off = true
	l := newLink(c)
	l.Want()
	l.Connected()
	l.Rest()
	require.True(t, l.Want(), "evicted, not broken")
	l.Connected()
	l.Failed(t0, 0)
	require.False(t, l.Want(), "it stays broken")
	require.False(t, l.Patient(t0))
	l.Close()
	l.Connected()
	require.Equal(t, Closed, l.State())
	require.False(t, l.Patient(t0))
}

func TestPulse(t *testing.T) {
	var p Pulse
	require.False(t, p.Expire(t0, 0))
	p.Start(t0, time.Second, 5)
	require.False(t, p.Expire(t0, 5))
	require.False(t, p.Expire(t0.Add(time.Second), 6), "a sign of life")
	require.True(t, p.Expire(t0.Add(2*time.Second), 6))
	require.False(t, p.Expire(t0.Add(2*time.Second), 6))
	require.Equal(t, t0.Add(3*time.Second), p.Deadline())
	p.Stop()
	require.False(t, p.Expire(t0.Add(time.Hour), 6))
	p.Start(t0, 0, 0)
	require.Zero(t, p.Deadline(), "off")
}
