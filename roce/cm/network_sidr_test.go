package cm_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// resolve asks another host for its datagram queue pair.
func (h *netHost) resolve(to *netHost) {
	id, err := h.agent.Resolve(h.n.now, cm.ResolveParams{Peer: to.addr, Service: udp})
	require.NoError(h.n.t, err)
	require.Nil(h.n.t, h.asked[id], "id in use")
	h.asked[id] = to
	h.settle()
}

// datagramQPN is the datagram queue pair of a host.
func (h *netHost) datagramQPN() roce.QPN { return 5000 + roce.QPN(h.addr.As16()[15]) }

// onSIDR: questions are answered, some late, some not; answers are right.
func (h *netHost) onSIDR(e cm.Event) {
	n := h.n
	to := h.asked[e.ID]
	switch e.Kind {
	case cm.EventSIDRRequest:
		d := n.some(time.Millisecond)
		if n.chance(20) {
			d = n.some(100 * time.Second)
		}
		n.after(d, func() {
			// An error says that nobody waits any more.
			if h.agent.AnswerSIDR(n.now, e.ID, cm.SIDRAnswer{QPN: h.datagramQPN()}) == nil {
				h.settle()
			}
		})
		return
	case cm.EventSIDRReply:
		require.Equal(n.t, to.addr, e.Peer)
		if e.Status == cm.SIDROK {
			require.Equal(n.t, to.datagramQPN(), e.QPN)
			require.EqualValues(n.t, cm.DefaultQKey, e.QKey)
		}
		n.told++
	case cm.EventUnreachable:
		n.untold++
	default:
		n.t.Fatalf("unexpected %v", e.Kind)
	}
	delete(h.asked, e.ID)
}
