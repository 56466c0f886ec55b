package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// step drives a host by one byte: a command, or time.
func step(h *host, b byte, ids []cm.CommID) []cm.CommID {
	id := cm.CommID(b)
	if len(ids) > 0 {
		id = ids[int(b>>4)%len(ids)]
	}
	now := h.w.now
	switch b & 15 {
	case 0:
		if id, err := h.Connect(now, cm.ConnectParams{Peer: addr("10.0.0.2"), Service: service, QPN: 2}); err == nil {
			ids = append(ids, id)
		}
	case 1:
		if _, err := h.Prepare(id, cm.AcceptParams{QPN: 3}); err == nil {
			_ = h.Accept(now, id)
		}
	case 2:
		_ = h.Confirm(id, nil)
	case 3:
		_ = h.Reject(now, id, cm.RejectParams{})
	case 4:
		_ = h.Disconnect(now, id, nil)
	case 5:
		_ = h.Established(id)
	case 6:
		h.Destroy(now, id)
	case 7:
		if id, err := h.Resolve(now, cm.ResolveParams{Peer: addr("10.0.0.2"), Service: udp}); err == nil {
			ids = append(ids, id)
		}
	case 8:
		_ = h.AnswerSIDR(now, id, cm.SIDRAnswer{QPN: 5})
	case 9:
		h.w.now = now.Add(time.Duration(b) * 10 * time.Millisecond)
		h.Expire(h.w.now)
	}
	return ids
}

// FuzzAgent gives an agent any messages between commands. It survives, each
// connection ends once, and nothing is left when time has passed.
func FuzzAgent(f *testing.F) {
	for _, file := range []string{"cm-rping", "cm-ucmatose", "cm-reject", "synthetic-all-opcodes"} {
		var script []byte
		for _, p := range recording(f, captures+file+".pcap") {
			script = append(append(script, 0x0F), p.mad[16:]...)
			script = append(script, 1, 5, 4)
		}
		f.Add(script)
	}
	f.Add([]byte{0, 7, 9, 0x19, 6, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newWorld(t)
		h := w.host("10.0.0.1", func(c *cm.Config) { c.MaxHalfOpen, c.MaxSIDR = 8, 8 })
		require.NoError(t, h.Listen(service))
		require.NoError(t, h.Listen(udp))
		require.NoError(t, h.Listen(1))
		var ids []cm.CommID
		ended, gone := map[cm.CommID]bool{}, map[cm.CommID]bool{}
		look := func() {
			h.TakeSends(nil)
			for _, e := range h.TakeEvents(nil) {
				require.False(t, gone[e.ID], "%v after the end", e.Kind)
				switch e.Kind {
				case cm.EventConnectRequest, cm.EventSIDRRequest:
					ids = append(ids, e.ID)
				case cm.EventRejected, cm.EventUnreachable, cm.EventDisconnected:
					require.False(t, ended[e.ID], "%v, a second end", e.Kind)
					ended[e.ID] = true
				case cm.EventTimewaitExit:
					gone[e.ID] = true
				default:
				}
			}
		}
		for len(script) > 0 {
			b := script[0]
			script = script[1:]
			if b&15 < 10 {
				ids = step(h, b, ids)
			} else {
				n := min(len(script), cm.MADLen-16)
				mad := append([]byte{1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, script[:n]...)
				mad = append(mad, make([]byte, cm.MADLen-len(mad))...)
				script = script[n:]
				if len(ids) > 0 && b&0x10 != 0 { // name a connection of ours
					id := uint32(ids[int(b>>5)%len(ids)])
					copy(mad[28:], []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
				}
				h.Handle(w.now, addr("10.0.0.2"), mad)
			}
			look()
		}
		h.Shutdown(w.now)
		look()
		w.wait(100 * time.Hour)
		look()
		require.Zero(t, h.Usage())
	})
}
