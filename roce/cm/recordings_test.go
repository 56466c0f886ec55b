package cm_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// part is one side of a recorded conversation: its NIC, and how what its
// application did ends.
type part struct {
	addr   string
	guid   uint64
	events []string
}

// conversation is what a capture holds of connection management.
type conversation struct {
	active, passive part
	refused         bool // nobody listens
	// unseen are messages of the passive side that passed the recorder by, by the
	// number of the packet after which they must have come.
	unseen map[int]cm.Message
	// unsaid are numbers of packets that no agent would have sent there.
	unsaid map[int]bool
}

const (
	rxeActive  = 0x505400fffe770001
	rxePassive = 0x505400fffe770002
)

// rxe is a conversation of two rdma_rxe, with n connections.
func rxe(n int) conversation {
	var a, p []string
	for range n {
		a, p = append(a, "DISCONNECTED"), append(p, "DISCONNECTED")
	}
	for range n {
		p = append([]string{"ESTABLISHED"}, p...)
	}
	return conversation{
		active: part{addr: "10.77.0.11", guid: rxeActive, events: a}, passive: part{addr: "10.77.0.12", guid: rxePassive, events: p},
	}
}

func conversations() map[string]conversation {
	reject := rxe(0)
	reject.refused, reject.active.events = true, []string{"REJECTED", "TIMEWAIT_EXIT"}
	one := rxe(1)
	// rdma_rxe asks hardware of another kind, and ends; what the other side said was not recorded, but its
	// ids, its queue pair and its first PSN are in what follows.
	foreign := conversation{
		active:  part{addr: "192.170.1.2", guid: 0x227bd2fffe93899a, events: one.active.events},
		passive: part{addr: "192.170.1.50", guid: 1, events: one.passive.events},
	}
	const theirID, ourID = 0xfedcabed, 0x407ec9f2
	tid := cm.Header{TID: 0x2f2c97e40}
	foreign.unseen = map[int]cm.Message{
		1: &cm.REP{
			Header: tid, LocalID: theirID, RemoteID: ourID, QPN: 0xDEADED, StartPSN: 0xFEDFED,
			ResponderResources: 16, InitiatorDepth: 1, TargetACKDelay: 15, RNRRetry: 7, CAGUID: 1,
		},
		4: &cm.DREP{Header: tid, LocalID: theirID, RemoteID: ourID},
	}
	// Made by hand, one message of each kind: the MRA and the DREP have their ids
	// the wrong way round, the REJ refuses what was accepted.
	synthetic := conversation{
		active:  part{addr: "192.0.2.1", guid: 0x020000fffe000001, events: append(one.active.events, "SIDR_REPLY")},
		passive: part{addr: "192.0.2.2", guid: 0x020000fffe000002, events: one.passive.events},
		unsaid:  map[int]bool{41: true, 44: true, 46: true},
		unseen: map[int]cm.Message{
			46: &cm.DREP{Header: cm.Header{TID: 0x500abcdef}, LocalID: 0x55667788, RemoteID: 0x11223344},
		},
	}
	return map[string]conversation{
		"cm-rping": one, "cm-ucmatose": one, "cm-reject": reject,
		"tool-ib_send_bw-R": rxe(2), "tool-ib_write_bw-R": rxe(2),
		"rxe_rping_cm_send": foreign, "synthetic-all-opcodes": synthetic,
	}
}

// packets returns the recorded messages and those that must have been.
func (c *conversation) packets(recorded []gsi) (all []gsi) {
	for _, p := range recorded {
		all = append(all, p)
		if m := c.unseen[p.n]; m != nil {
			all = append(all, gsi{src: netip.MustParseAddr(c.passive.addr), dst: netip.MustParseAddr(c.active.addr), mad: m.Append(nil)})
		}
	}
	return all
}

// Each side of each recorded conversation, played by our agent.
func TestReplay(t *testing.T) {
	for name, c := range conversations() {
		packets := c.packets(recording(t, captures+name+".pcap"))
		t.Run(name+", active", func(t *testing.T) { c.replay(t, &c.active, packets) })
		t.Run(name+", passive", func(t *testing.T) { c.replay(t, &c.passive, packets) })
	}
}

func (c *conversation) replay(t *testing.T, side *part, packets []gsi) {
	w := newWorld(t)
	h := w.host(side.addr, func(cfg *cm.Config) { cfg.CAGUID = side.guid })
	r := &replay{t, h, map[cm.CommID]cm.CommID{}, map[uint64]uint64{}}
	seen := []string{}
	for _, p := range packets {
		m, err := cm.Decode(p.mad)
		require.NoError(t, err)
		switch {
		case p.src != h.addr:
			c.serve(t, h, m)
			r.feed(p, m)
		case c.unsaid[p.n]:
			continue
		default:
			r.act(m)
			r.expect(m)
		}
		switch m.(type) { // those whose event is what act waits for
		case *cm.REQ, *cm.REP, *cm.SIDRREQ:
		default:
			seen = append(seen, kinds(h.TakeEvents(nil))...)
		}
	}
	h.quiet()
	require.Equal(t, append([]string{}, side.events...), seen)
	w.wait(1 << 40)
	h.quiet()
	for _, e := range h.TakeEvents(nil) {
		require.Equal(t, cm.EventTimewaitExit, e.Kind)
	}
	h.empty()
}

// serve listens for what is asked next, if somebody did.
func (c *conversation) serve(t *testing.T, h *host, m cm.Message) {
	if c.refused {
		return
	}
	switch m := m.(type) {
	case *cm.REQ:
		if err := h.Listen(m.Service); err != nil {
			require.ErrorIs(t, err, cm.ErrListening)
		}
	case *cm.SIDRREQ:
		require.NoError(t, h.Listen(m.Service))
	}
}

// No capture with packets to queue pair 1 is left out.
func TestEveryRecordingIsReplayed(t *testing.T) {
	files, err := filepath.Glob(captures + "*.pcap")
	require.NoError(t, err)
	talks, found := conversations(), 0
	for _, file := range files {
		packets := recording(t, file)
		if len(packets) == 0 {
			continue
		}
		c, ok := talks[strings.TrimSuffix(filepath.Base(file), ".pcap")]
		require.True(t, ok, "%s", file)
		found++
		for _, p := range packets {
			for _, a := range []netip.Addr{p.src, p.dst} {
				require.Contains(t, []string{c.active.addr, c.passive.addr}, a.String(), "%s packet %d", file, p.n)
			}
		}
	}
	require.Len(t, talks, found)
}
