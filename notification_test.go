package hixl_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// A notification arrives after the bytes that it speaks of, whatever the network
// does and however many queue pairs carried them.
func TestNotificationAfterData(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 2, sim.Config{Seed: seed, Link: bad}, hixl.PeerConfig{QPs: 3, SendQueue: 16, Seed: seed + 1})
			p := w.peer(0, 1)
			r := w.remote(p, 1)
			var to *hixl.Peer
			for round := range byte(6) {
				for i := range w.mem[0].Bytes() {
					w.mem[0].Bytes()[i] = round*31 + byte(i)
				}
				var list []hixl.Desc
				for i := range uint64(64) {
					list = append(list, hixl.Desc{Local: w.mem[0], LocalOff: i * 1000, Remote: r, RemoteOff: i * 1000, Len: 1000})
				}
				var h *hixl.Handle
				var err error
				switch round % 3 {
				case 0: // bound to the transfer
					h, err = p.Start(&hixl.Transfer{Op: hixl.Write, Descs: list, Notify: &hixl.Notification{Name: "round", Data: []byte{round}}})
				case 1: // an immediate
					h, err = p.Start(&hixl.Transfer{Op: hixl.WriteImm, Descs: list, Imm: uint32(round)})
				case 2: // by itself, behind everything on all queue pairs
					_, err = p.TransferAsync(hixl.Write, list)
					require.NoError(t, err)
					h, err = p.Start(&hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{Name: "round", Data: []byte{round}}})
				}
				require.NoError(t, err)
				w.until(time.Minute, func() bool {
					if to == nil {
						to, _ = w.ears[1].Accept(over())
					}
					if to == nil {
						return false
					}
					n, ok := to.TryNotification()
					if !ok {
						return false
					}
					require.True(t, bytes.Equal(w.mem[0].Bytes()[:64000], w.mem[1].Bytes()[:64000]), "all bytes are there")
					if round%3 == 1 {
						require.Equal(t, hixl.Notification{Imm: uint32(round), IsImm: true}, n)
					} else {
						require.Equal(t, hixl.Notification{Name: "round", Data: []byte{round}}, n)
					}
					return true
				})
				w.wait(h, nil)
			}
		})
	}
}

// A peer that takes no notifications gets no more than it has room for: who tells
// more is told so, and goes on when there is room again. None is lost.
func TestNotificationsAreBounded(t *testing.T) {
	ctx := soon(t)
	_, _, toB, toA := couple(t, "127.88.46", hixl.PeerConfig{Notifications: 8})
	for i := range 8 {
		require.NoError(t, toB.Notify(ctx, hixl.Notification{Name: "n", Data: []byte{byte(i)}}))
	}
	_, err := toB.Start(&hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{Name: "n"}})
	require.ErrorIs(t, err, hixl.ErrNotifyFull)
	_, err = toB.WriteImmAsync(hixl.Desc{}, 1)
	require.ErrorIs(t, err, hixl.ErrNotifyFull)
	late := make(chan error, 1)
	go func() {
		late <- toB.Notify(ctx, hixl.Notification{Name: "late", Data: bytes.Repeat([]byte("d"), hixl.MaxNotification)})
	}()
	for i := range 8 {
		n, err := toA.Notifications(ctx)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, n.Data)
		require.Zero(t, n.Lost)
	}
	require.NoError(t, <-late)
	n, err := toA.Notifications(ctx)
	require.NoError(t, err)
	require.Equal(t, "late", n.Name)
	require.Len(t, n.Data, hixl.MaxNotification)
	_, ok := toA.TryNotification()
	require.False(t, ok)
	for i := range 100 {
		require.NoError(t, toB.WriteImm(ctx, hixl.Desc{}, uint32(i)))
		n, err := toA.Notifications(ctx)
		require.NoError(t, err)
		require.EqualValues(t, i, n.Imm)
	}
	require.ErrorIs(t, toB.Notify(ctx, hixl.Notification{Name: string(make([]byte, 1025))}), hixl.ErrTransfer)
	require.NoError(t, toA.Close())
	_, err = toA.Notifications(ctx)
	require.ErrorIs(t, err, net.ErrClosed)
}

// A transfer whose data are refused late, because its peer has restarted while it
// waited, tells the new incarnation nothing, and takes no room of others'.
func TestNotifyOfRefusedData(t *testing.T) {
	cfg := hixl.PeerConfig{Notifications: 2}
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
	p := w.peer(0, 1)
	w.wait(p.WriteAsync(hixl.Desc{}))
	old := w.remote(p, 1)
	w.halt(1)
	w.until(time.Minute, func() bool { return p.State() == hixl.PeerConnecting })
	var all []*hixl.Handle
	for i := range 4 {
		x := &hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Inline: []byte{1}, Remote: old}, {Inline: []byte{2}, Remote: old}}, Imm: 7}
		if i%2 == 0 {
			x.Notify = &hixl.Notification{Name: "written"}
		} else {
			x.Op = hixl.WriteImm
		}
		h, err := p.Start(x)
		require.NoError(t, err)
		all = append(all, h)
	}
	w.boot(1)
	for _, h := range all {
		w.until(time.Minute, w.done(h))
		require.ErrorIs(t, h.Err(), hixl.ErrStale)
	}
	w.pass(time.Second)
	back, err := w.ears[1].Accept(over())
	require.NoError(t, err)
	_, told := back.TryNotification()
	require.False(t, told)
	for range 2 { // all the room there is
		w.wait(p.Start(&hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{Name: "later"}}))
	}
	n, told := back.TryNotification()
	require.True(t, told)
	require.Equal(t, "later", n.Name)
}
