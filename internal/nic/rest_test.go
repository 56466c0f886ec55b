package nic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// resting is a receiver of which only the rests are tried.
func resting(mode Progress) (*receiver, *time.Timer) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	n := &NIC{cfg: Config{Progress: mode}, quit: make(chan struct{})}
	return &receiver{nic: n, resume: make(chan struct{}, 1)}, timer
}

// The receive goroutine leaves the transport to an application that looks, and
// knows whether it was told of the end.
func TestRest(t *testing.T) {
	r, timer := resting(Balanced)
	require.False(t, r.leave(timer), "nobody has looked")
	r.polls.Add(1)
	require.True(t, r.leave(timer), "somebody looked and does no more, which nobody told")
	require.False(t, r.leave(timer))
	r.polls.Add(1)
	r.resume <- struct{}{}
	require.False(t, r.leave(timer), "told")
	require.False(t, r.leave(timer), "and that is known")
	r.polls.Add(1)
	close(r.nic.quit)
	require.False(t, r.leave(timer))
}

// Where a packet has waited for the end of a rest, none follows for some time.
func TestRestIsLeftOut(t *testing.T) {
	r, timer := resting(Balanced)
	r.rest.skip = 2
	for range 2 {
		r.polls.Add(1)
		require.False(t, r.leave(timer))
	}
	r.polls.Add(1)
	require.True(t, r.leave(timer))
}

// An application that parks at once is not waited for.
func TestNoRestForLowCPU(t *testing.T) {
	r, timer := resting(LowCPU)
	r.polls.Add(1)
	require.False(t, r.leave(timer))
}

// A transfer of data gathers while the receive goroutine sleeps, but not for some
// time after packets were lost, and messages never.
func TestGathers(t *testing.T) {
	r := &receiver{bytes: bulk + 1}
	require.True(t, r.gathers())
	r.behind = behindFor
	require.False(t, r.gathers())
	r.behind, r.bytes = 0, bulk
	require.False(t, r.gathers())
}
