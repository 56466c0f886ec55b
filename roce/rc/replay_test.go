package rc_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// Replay against recordings of rdma_rxe (and of a small peer in Python): our
// engine takes the place of either end and is given what that end was given,
// work requests and packets, at the recorded times. It must send the recorded
// packets: requests with opcode, PSN, A, extension headers and payload;
// responses with opcode, PSN, syndrome, MSN and payload. What it does otherwise
// on purpose is listed with each recording and described in tolerances.

func (r *recording) connections(t testing.TB) []*connection {
	t.Helper()
	qpns := r.qpns
	if qpns == nil {
		qpns = [][2]roce.QPN{{}}
	}
	var list []*connection
	for _, q := range qpns {
		list = append(list, load(t, r, q))
	}
	return list
}

func TestReplay(t *testing.T) {
	for i := range recordings {
		r := &recordings[i]
		t.Run(r.file, func(t *testing.T) {
			a := allow(r.differs)
			whole := true
			for _, c := range r.connections(t) {
				for _, end := range []side{active, passive} {
					ran := false
					t.Run(fmt.Sprintf("%v-%#x", end, uint32(c.qpn[end])), func(t *testing.T) {
						c.replay(t, end, a)
						ran = true
					})
					whole = whole && ran
				}
			}
			if whole { // and not only what -run picked
				require.NoError(t, a.unused())
			}
		})
	}
}

// replay plays one end: packet by packet against the recording, then once more
// for each rule by which the number of our responses differs.
func (c *connection) replay(t *testing.T, end side, a *allowance) {
	requests, responses := c.of(end, true), c.of(end, false)
	check := func(o *outcome) {
		t.Helper()
		require.NoError(t, c.compareRequests(requests, o.requests, a))
		c.requireEnd(t, end, o, a)
	}
	o := c.play(t, end, mode{}, a)
	check(o)
	if asked := c.play(t, end, mode{ask: true}, a); len(asked.asked) > 0 {
		require.True(t, a.use(silentDuplicate))
		require.NoError(t, c.compareResponses(responses, asked.responses, a))
		require.NoError(t, sameEmissions(asked.withoutAsked(), o.responses), "duplicates that do not ask")
	} else {
		require.NoError(t, c.compareResponses(responses, o.responses, a))
	}
	batched := c.play(t, end, mode{batched: true}, a)
	check(batched)
	want := c.coalesced(end, o, batched.batches)
	require.NoError(t, sameEmissions(want, batched.responses), "in batches")
	if sameEmissions(o.responses, want) != nil {
		require.True(t, a.use(coalescedACK), "fewer ACKs in batches")
	}
}

// play plays one end, earlier where the recording waits to repair a READ.
func (c *connection) play(t *testing.T, end side, how mode, a *allowance) *outcome {
	t.Helper()
	for _, x := range a.list {
		how.readAtOnce = how.readAtOnce || x == readAtOnce
	}
	o := play(t, c, end, how)
	if o.shifted > 0 {
		require.True(t, a.use(readAtOnce))
	}
	return o
}

// Every capture with RC packets is replayed, all of its RC packets.
func TestReplayIsComplete(t *testing.T) {
	files, err := filepath.Glob(captures + "*.pcap")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	replayed := map[string]*recording{}
	for i := range recordings {
		replayed[recordings[i].file] = &recordings[i]
	}
	for _, path := range files {
		file := strings.TrimSuffix(filepath.Base(path), ".pcap")
		packets := readCapture(t, file)
		if len(packets) == 0 || notReplayed[file] != "" {
			require.NotContains(t, replayed, file)
			continue
		}
		require.Contains(t, replayed, file)
		count := 0
		for _, c := range replayed[file].connections(t) {
			count += len(c.packets)
		}
		require.Equal(t, len(packets), count, file)
	}
	for file := range notReplayed {
		require.NotEmpty(t, readCapture(t, file))
	}
}

// Every tolerance is needed by a recording, or there would be no reason for it.
// TestReplay fails where a recording lists one that it does not need.
func TestTolerancesAreNeeded(t *testing.T) {
	listed := map[*tolerance]bool{}
	for _, r := range recordings {
		for _, x := range r.differs {
			listed[x] = true
		}
	}
	for _, x := range tolerances {
		require.True(t, listed[x], "%s (%s): %s", x.name, x.section, x.rule)
		delete(listed, x)
	}
	require.Empty(t, listed)
}
