package hixl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

func TestTraceReport(t *testing.T) {
	now := mono.Time(0)
	x := &Trace{clock: func() mono.Time { return now }, spans: make([]span, 0, 4)}
	talk := func(from, to Time, bytes uint64, failed bool) {
		x.add(span{name: "write", peer: "p", from: from, to: to, bytes: bytes, failed: failed})
	}
	talk(100, 200, 7, false)
	now = 150
	end := x.Compute("step")
	now = 400
	end()
	talk(120, 180, 1, true)
	talk(300, 350, 2, false)
	r := x.Report()
	require.Equal(t, TraceReport{Wall: 300, Communication: 150, Computation: 250, Hidden: 100, Transfers: 3, Failed: 1, Bytes: 10}, r)
	require.InDelta(t, 2.0/3, r.Overlap(), 1e-9)
	require.Contains(t, r.String(), "67 % hidden")
	talk(500, 600, 0, false) // the oldest goes
	r = x.Report()
	require.EqualValues(t, 1, r.Lost)
	require.Equal(t, 210*time.Nanosecond, r.Communication)

	x = nil
	x.Compute("nothing")()
	require.Zero(t, x.Report())
	require.Zero(t, x.Report().Overlap())
}
