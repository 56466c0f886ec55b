package engine_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/engine"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// Engines on raw frames, at the ends of a virtual link, do what they do on sockets:
// connect, write, read, notify, disconnect.
func TestEnginesOnXDP(t *testing.T) {
	sockets := func(a netip.Addr) (transport.Conn, error) { return udp.Open(a, udp.Config{}) }
	frames := func(m xdp.Mode) func(netip.Addr) (transport.Conn, error) {
		return func(a netip.Addr) (transport.Conn, error) { return xdp.Open(a, xdp.Config{Mode: m}) }
	}
	native, generic := frames(xdp.ModeNative), frames(xdp.ModeGeneric)
	for _, c := range []struct {
		name string
		mtu  int
		open [2]func(netip.Addr) (transport.Conn, error)
	}{
		{"native", 1500, [2]func(netip.Addr) (transport.Conn, error){native, native}},
		{"native, 9000", 9000, [2]func(netip.Addr) (transport.Conn, error){native, native}},
		{"generic", 1500, [2]func(netip.Addr) (transport.Conn, error){generic, generic}},
		{"generic, 9000", 9000, [2]func(netip.Addr) (transport.Conn, error){generic, generic}},
		{"sockets and native", 1500, [2]func(netip.Addr) (transport.Conn, error){sockets, native}},
		{"generic and sockets", 9000, [2]func(netip.Addr) (transport.Conn, error){generic, sockets}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := veth.New(veth.Config{MTU: c.mtu})
			if errors.Is(err, unix.EPERM) {
				t.Skipf("needs root: %v", err)
			}
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			var ends [2]*engine.Engine
			for i := range ends {
				var conn transport.Conn
				require.NoError(t, p.Do(i, func() (err error) {
					conn, err = c.open[i](veth.Addrs4[i])
					return err
				}))
				ends[i] = startWith(t, engine.Config{LocalEngine: veth.Addrs4[i].String() + port, NIC: hixl.Config{Transport: conn}})
			}
			a, b := ends[0], ends[1]
			remote := veth.Addrs4[1].String() + port
			require.NoError(t, a.Connect(soon(t), remote))
			const size = 300_001
			here, _ := register(t, a, 2*size)
			there, _ := register(t, b, size)
			for i := range size {
				here[i] = byte(i*7 + i>>9)
			}
			require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here[:size], addr(there))}))
			require.Equal(t, here[:size], there[:size])
			for i := range size {
				there[i] = byte(i*5 + i>>8)
			}
			require.NoError(t, a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{piece(here[size:2*size], addr(there))}))
			require.Equal(t, there[:size], here[size:2*size])
			require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "kv", Msg: "block 3"}))
			require.Equal(t, []engine.NotifyDesc{{Name: "kv", Msg: "block 3"}}, notifies(t, b, 1))
			require.NoError(t, a.Disconnect(soon(t), remote))
			require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{piece(here[:8], addr(there))}), engine.ErrNotConnected)
		})
	}
}
