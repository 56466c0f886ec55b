package hixl_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport/sim"
)

// What a peer has written to memory that finishes late is not called fenced while it
// lands, be the peer forgotten, closed, or a peer of another context on the NIC.
func TestFencedWhenLateMemoryIsStill(t *testing.T) {
	for name, end := range map[string]func(w *world, back *hixl.Peer){
		"superseded": func(*world, *hixl.Peer) {},
		"closed":     func(_ *world, back *hixl.Peer) { require.NoError(t, back.Close()) },
		"forgotten": func(w *world, back *hixl.Peer) {
			w.until(time.Minute, func() bool { return back.State() == hixl.PeerClosed })
		},
		"another context": func(w *world, _ *hixl.Peer) {
			nic := w.all[1].NIC()
			w.halt(1)
			var err error
			w.all[1], err = nic.OpenContext(w.cfg)
			require.NoError(w.t, err)
			_, err = w.all[1].Listen(w.t.Context(), ":18515")
			require.NoError(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hixl.PeerConfig{
				QPs: 1, FenceAfter: 10 * time.Millisecond, KeepAlive: time.Second, Connect: hixl.ConnectOptions{Timeout: 12, Retries: 1},
				Recovery: hixl.RecoveryConfig{Min: 2 * time.Second, Max: 2 * time.Second, GiveUp: 15 * time.Second},
			}
			w := newWorld(t, 1, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
			late := devicetest.NewLate(devicetest.LateConfig{Size: 4096, MaxDelay: time.Minute, Seed: 3})
			conn, err := w.net.Host(simAddr(1))
			require.NoError(t, err)
			nic, err := hixl.OpenNIC(hixl.Config{Transport: conn, Clock: w.net.Now, Stepped: true})
			require.NoError(t, err)
			c, err := nic.OpenContext(cfg)
			require.NoError(t, err)
			ear, err := c.Listen(t.Context(), ":18515")
			require.NoError(t, err)
			mem, err := c.RegisterMemory(late, hixl.MemoryOptions{Access: everything})
			require.NoError(t, err)
			w.all, w.mem, w.ears = append(w.all, c), append(w.mem, mem), append(w.ears, ear)
			p := w.peer(0, 1)
			r := w.remote(p, 1)
			w.wait(p.WriteAsync(hixl.Desc{}))
			back, err := ear.Accept(over())
			require.NoError(t, err)

			h, err := p.WriteAsync(hixl.Desc{Inline: bytes.Repeat([]byte{7}, 200), Remote: r})
			require.NoError(t, err)
			w.pass(5 * time.Millisecond)
			require.NotZero(t, late.Pending())
			w.net.Cut(simAddr(0), simAddr(1))
			h.StartCancel()
			w.pass(time.Second)
			end(w, back)
			w.net.Heal(simAddr(0), simAddr(1))
			gen := p.Generation()
			for !h.Fenced() {
				w.settle()
				if now := w.net.Now(); !late.Next().IsZero() && now >= late.Next() {
					late.Step(now)
					continue
				}
				next := mono.Earliest(w.net.Next(), late.Next())
				for _, c := range w.all {
					next = mono.Earliest(next, c.Next())
				}
				w.net.Advance(max(next, w.net.Now()+1))
			}
			require.Zero(t, late.Pending(), "it was still landing")
			w.until(time.Minute, func() bool { return p.State() == hixl.PeerUp && p.Generation() > gen })
			w.halt(1)
			require.NoError(t, nic.Close())
		})
	}
}
