package xdp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGaps(t *testing.T) {
	const most = 40 * time.Microsecond
	var g gaps
	g.start(most)
	require.False(t, g.short(), "nobody has waited yet")
	for range 100 {
		g.add(time.Microsecond)
	}
	require.True(t, g.short(), "packets come each microsecond")
	g.add(time.Second)
	require.True(t, g.short(), "one pause")
	looks := 0
	for ; g.short(); looks++ {
		g.add(most)
	}
	require.Less(t, looks, 8, "looks in vain until it sleeps")
	for range 100 {
		g.add(most / 2)
	}
	require.False(t, g.short(), "packets that come rarely")

	g.start(SpinOff)
	for range 100 {
		g.add(0)
	}
	require.False(t, g.short(), "it is off")
}

func TestDepth(t *testing.T) {
	const all = 8192
	d := newDepth(all)
	// pass has n packets come in bursts of that many, which are read at once.
	pass := func(n, burst int) {
		for ; n > 0; n -= burst {
			d.gave(max(d.lacks(), 0))
			require.GreaterOrEqual(t, d.has, min(burst, all))
			d.waited(burst)
			d.took(burst)
		}
	}
	pass(100, 10)
	require.Equal(t, minDepth, d.now)
	pass(1, 1500)
	require.Equal(t, 3000, d.now, "twice what was seen")
	pass(3*depthRest, 10)
	require.Equal(t, minDepth, d.now, "and fewer when less comes")

	d.gave(max(d.lacks(), 0))
	d.waited(minDepth) // some more may have been lost
	d.took(minDepth)
	pass(3*depthRest, 10)
	require.Equal(t, 2*minDepth, d.now, "for good")
	d.gave(max(d.lacks(), 0))
	d.waited(all)
	d.took(d.has)
	require.Equal(t, all, d.now, "never more than there are")

	small := newDepth(MinFrames)
	require.Equal(t, MinFrames, small.lacks())
}
