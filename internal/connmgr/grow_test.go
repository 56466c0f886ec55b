package connmgr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport/sim"
)

// asker counts how its questions end.
type asker struct{ ends map[cm.EventKind]int }

func (a *asker) Event(e *cm.Event) { a.ends[e.Kind]++ }
func (a *asker) Closed(error)      {}

func (m *Manager) receives() int {
	_, n := m.gsi.Outstanding()
	return n
}

// A manager that nobody needs has little memory; the first MAD, or a listener,
// makes it take the rest, once, however many come; and nothing is lost for good.
func TestReceivesGrow(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 3, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}}})
	var ms []*Manager
	for _, n := range f.NICs {
		m, err := New(Config{NIC: n})
		require.NoError(t, err)
		ms = append(ms, m)
	}
	f.Settle()
	for _, m := range ms {
		require.Nil(t, m.inbox.rest)
		require.Len(t, m.inbox.first.Bytes(), firstSlots*slotBytes)
		require.Equal(t, firstSlots, m.receives())
	}
	got := &asker{ends: map[cm.EventKind]int{}}
	for range 3 * inboxSlots {
		_, err := ms[0].Resolve(cm.ResolveParams{Peer: f.NICs[1].Addr(), Service: cm.PortSpaceUDP.Service(1)}, got)
		require.NoError(t, err)
	}
	f.RunUntil(time.Minute, func() bool { return got.ends[cm.EventSIDRReply] == 3*inboxSlots })
	require.Equal(t, map[cm.EventKind]int{cm.EventSIDRReply: 3 * inboxSlots}, got.ends)
	for i, m := range ms[:2] {
		require.Len(t, m.inbox.rest.Bytes(), (inboxSlots-firstSlots)*slotBytes)
		require.Equal(t, inboxSlots, m.receives(), "all receive again")
		_, u := m.Stats()
		require.Zero(t, u, "host %d", i)
	}
	require.Nil(t, ms[2].inbox.rest)
	require.NoError(t, ms[2].Listen(1, got))
	f.Settle()
	require.Equal(t, inboxSlots, ms[2].receives())
	for _, m := range ms {
		m.Close()
		for _, r := range []*mr.Region{m.inbox.first, m.inbox.rest} {
			require.False(t, r.Valid())
		}
	}
	f.Settle()
}
