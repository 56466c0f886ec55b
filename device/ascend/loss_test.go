//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/staged"
)

// A device that is lost while transfers run in both directions ends those of its
// connection on both sides: where the device is, with the driver's code and name. A region of another device stays of use, to the same peer.
func TestDeviceLostUnderTransfers(t *testing.T) {
	const n = 1 << 20
	for i, after := range []string{"0", "5", "12"} {
		t.Run("after "+after, func(t *testing.T) {
			s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent", "DEVICES": "3", "LATENCY": "5000"})
			a, b := parties(s, fmt.Sprintf("127.72.%d", 22+i), hixl.PeerConfig{}, nil)
			spare := s.open(func(c *ascend.Config) { c.Device = 2 })
			m := memory(t, pool(t, spare, staged.Config{}), n)
			region, err := b.c.RegisterMemory(m, hixl.MemoryOptions{Access: rights})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, region.Deregister(soon(t))) })

			start := func(p *party, op hixl.TransferOp, off int) *hixl.Handle {
				h, err := p.peer.Start(&hixl.Transfer{Op: op, Descs: []hixl.Desc{p.desc(off, n)}})
				require.NoError(t, err)
				return h
			}
			there := []*hixl.Handle{start(a, hixl.Write, 0), start(a, hixl.Read, n)}
			here := []*hixl.Handle{start(b, hixl.Write, 2*n), start(b, hixl.Read, 3*n)}
			s.set("LOSE", "1:"+after)
			for _, h := range there {
				err := h.Wait(soon(t))
				var failed *hixl.TransferError
				require.ErrorAs(t, err, &failed)
				require.True(t, errors.Is(err, cq.ErrRemoteOperation) || errors.Is(err, hixl.ErrDisconnected) || errors.Is(err, hixl.ErrPeerDown), "%v", err)
			}
			for _, h := range here {
				err := h.Wait(soon(t))
				require.ErrorIs(t, err, device.ErrLost)
				var failed *device.DriverError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, 507010, failed.Code)
				require.Equal(t, "ACL_ERROR_RT_LOST_HEARTBEAT", failed.Name)
				require.Equal(t, "ascend:1", failed.Device)
			}

			remote, err := a.peer.Import(b.c.Describe(region))
			require.NoError(t, err)
			want := noise(9, n)
			a.put(0, want)
			d := a.desc(0, n)
			d.Remote = remote
			require.NoError(t, a.peer.Connect(soon(t)))
			h, err := a.peer.Start(&hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{d}})
			require.NoError(t, err)
			require.NoError(t, h.Wait(soon(t)), "the other device lives")
			got := make([]byte, n)
			require.NoError(t, spare.Copy(device.Copy{Dir: device.Out, Dev: m.Block().Addr, Host: got}))
			require.Equal(t, want, got)
		})
	}
}
