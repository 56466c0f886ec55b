package rc_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// Replay against recordings of rdma_rxe (and of a small peer in Python): our
// engine takes the place of either end and is given what that end was given,
// work requests and packets, at the recorded times. It must send the recorded
// packets: requests with opcode, PSN, A, extension headers and payload;
// responses with opcode, PSN, syndrome, MSN and payload. What it does otherwise
// on purpose is listed with each recording and described in tolerances.

// recording is a capture with RC traffic.
type recording struct {
	file    string
	qpns    [][2]roce.QPN // active and passive end of each connection; nil: as vt printed
	timeout uint8         // of the stock tools
	differs []*tolerance
}

var recordings = []recording{
	{file: "rc-send"},
	{file: "rc-send-pad"},
	{file: "rc-send-zero"},
	{file: "rc-send-multi"},
	{file: "rc-sendimm"},
	{file: "rc-sendimm-multi"},
	{file: "rc-sendinv"},
	{file: "rc-write"},
	{file: "rc-write-pad"},
	{file: "rc-write-zero"},
	{file: "rc-write-multi"},
	{file: "rc-write-many", differs: []*tolerance{coalescedACK}},
	{file: "rc-write-psnwrap"},
	{file: "rc-write-mtu256"},
	{file: "rc-write-mtu512"},
	{file: "rc-writeimm"},
	{file: "rc-writeimm-zero"},
	{file: "rc-writeimm-multi"},
	{file: "rc-read"},
	{file: "rc-read-zero"},
	{file: "rc-read-multi"},
	{file: "rc-read-outstanding"},
	{file: "rc-read-mtu256"},
	{file: "rc-cas"},
	{file: "rc-faa"},
	{file: "v6-write-multi"},
	{file: "mtu4096-send-multi"},
	{file: "mtu4096-write-multi"},
	{file: "mtu4096-write-2048"},

	{file: "err-access-atomic"},
	{file: "err-access-read"},
	{file: "err-access-write"},
	{file: "err-badrkey-cas"},
	{file: "err-badrkey-read"},
	{file: "err-badrkey-sendinv"},
	{file: "err-badrkey-write"},
	{file: "err-badrkey-write-multi"},
	{file: "err-rnr"},
	{file: "err-rnr-exceeded"},
	{file: "err-rnr-writeimm", differs: []*tolerance{rnrFromPSN, silentDuplicate}},
	{file: "err-short-recv", differs: []*tolerance{shortReceive}},

	{file: "loss-ack-send"},
	{file: "loss-ack-write"},
	{file: "loss-all"},
	{file: "loss-atomic-ack"},
	{file: "loss-read-middle", differs: []*tolerance{readAtOnce, readNumbering}},
	{file: "loss-read-req"},
	{file: "loss-send-of-3", differs: []*tolerance{coalescedACK}},
	{file: "loss-write-last", differs: []*tolerance{probe, acknowledgedResend, silentDuplicate}},
	{file: "loss-write-middle"},

	{file: "tool-rc-pingpong", qpns: [][2]roce.QPN{{0x55, 0x5b}}, timeout: 14},
	{file: "tool-ib_write_bw", qpns: [][2]roce.QPN{{0x57, 0x5d}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{file: "tool-ib_read_bw", qpns: [][2]roce.QPN{{0x58, 0x5e}}, timeout: 14},
	{file: "tool-ib_send_bw", qpns: [][2]roce.QPN{{0x59, 0x5f}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{
		file: "tool-ib_write_lat", qpns: [][2]roce.QPN{{0x5a, 0x60}}, timeout: 14,
		differs: []*tolerance{silentDuplicate, coalescedACK, probe, punctual, earlyResend},
	},
	{
		file: "tool-ib_send_lat", qpns: [][2]roce.QPN{{0x5b, 0x61}}, timeout: 14,
		differs: []*tolerance{silentDuplicate, coalescedACK, earlyResend},
	},
	{file: "tool-ib_read_lat", qpns: [][2]roce.QPN{{0x5c, 0x62}}, timeout: 14},
	{file: "tool-ib_atomic_bw", qpns: [][2]roce.QPN{{0x5d, 0x63}}, timeout: 14},
	{file: "tool-ib_write_bw-b", qpns: [][2]roce.QPN{{0x65, 0x6b}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{
		file: "tool-ib_write_bw-R", qpns: [][2]roce.QPN{{0x5f, 0x65}, {0x60, 0x66}}, timeout: 19,
		differs: []*tolerance{coalescedACK},
	},
	{
		file: "tool-ib_send_bw-R", qpns: [][2]roce.QPN{{0x61, 0x67}, {0x62, 0x68}}, timeout: 19,
		differs: []*tolerance{coalescedACK},
	},
	{file: "cm-rping", qpns: [][2]roce.QPN{{0x51, 0x58}}, timeout: 19},
	{file: "cm-ucmatose", qpns: [][2]roce.QPN{{0x52, 0x59}}, timeout: 19, differs: []*tolerance{coalescedACK}},
	{file: "peer-pingpong", qpns: [][2]roce.QPN{{0x11, 0x123}}, timeout: 14},
	{file: "peer-write_bw", qpns: [][2]roce.QPN{{0x12, 0x123}}, timeout: 17},
}

// notReplayed are captures with RC packets that tell nothing to replay.
var notReplayed = map[string]string{
	"rxe_rping_cm_send":     "one SEND of a connection whose other packets are missing",
	"synthetic-all-opcodes": "made for the decoders, no exchange",
}

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

// requireEnd compares how things stand at the end: completions, memory, and
// whether the connection has failed.
func (c *connection) requireEnd(t *testing.T, end side, o *outcome, a *allowance) {
	t.Helper()
	after := c.after(t, end)
	require.Equal(t, after, o.memory[:len(after)], "memory")
	if c.script == nil {
		c.requireSuccess(t, end, o)
		return
	}
	s := c.script
	if s.memory[end] != nil && littleEndian {
		require.Equal(t, s.memory[end], o.memory[:32], "memory that the %v end printed", end)
	}
	ours := printed(o.sent)
	if end == passive {
		ours = printed(o.received)
		require.Empty(t, o.sent)
		if len(ours) == 1 && ours[0] == "wr 0 status 1" && s.printed[end][0] == "wr 0 status 2" && a.use(shortReceive) {
			ours[0] = "wr 0 status 2"
		}
	}
	require.Equal(t, s.printed[end], ours, "completions")
	fatal := s.complete[end] < len(s.printed[end])
	if end == passive { // an error without a receive is not printed: the NAK tells
		for i := range o.responses {
			if o.responses[i].p.AETH.Syndrome.Kind() == roce.AckNAK && o.responses[i].p.AETH.Syndrome != roce.SynNakSeq {
				fatal = true
			}
		}
	}
	require.Equal(t, fatal, o.failed, "in the error state")
}

func printed(list []cq.Completion) []string {
	var out []string
	for i := range list {
		out = append(out, show(&list[i]))
	}
	return out
}

// requireSuccess: every work request and every receive has succeeded.
func (c *connection) requireSuccess(t *testing.T, end side, o *outcome) {
	t.Helper()
	require.False(t, o.failed)
	require.Len(t, o.sent, len(c.sends[end]))
	for i, done := range o.sent {
		require.Equal(t, cq.StatusSuccess, done.Status)
		require.Equal(t, uint64(i), done.WRID)
		require.Equal(t, c.sends[end][i].op.Completion(), done.Opcode)
		require.Equal(t, uint32(c.sends[end][i].length), done.ByteLen)
	}
	receives := o.received
	for i := range c.sends[end.other()] {
		m := &c.sends[end.other()][i]
		if !m.consumes() {
			continue
		}
		require.NotEmpty(t, receives)
		require.Equal(t, cq.StatusSuccess, receives[0].Status)
		require.Equal(t, uint32(m.length), receives[0].ByteLen)
		receives = receives[1:]
	}
	require.Empty(t, receives)
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
