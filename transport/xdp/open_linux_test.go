package xdp_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// tryAt opens a Conn that should not open.
func tryAt(t *testing.T, p *veth.Pair, addr netip.Addr, cfg xdp.Config) error {
	t.Helper()
	return p.Do(0, func() error {
		c, err := xdp.Open(addr, cfg)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// addAddr gives end 0 another address.
func addAddr(t *testing.T, p *veth.Pair, link string, addr netip.Addr) {
	t.Helper()
	l, err := p.Handle(0).LinkByName(link)
	require.NoError(t, err)
	require.NoError(t, p.Handle(0).AddrAdd(l, &netlink.Addr{
		IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(24, addr.BitLen())},
	}))
}

func TestOpenErrors(t *testing.T) {
	p := lab(t, veth.Config{})
	other := netip.MustParseAddr("10.77.0.3")
	addAddr(t, p, veth.Links[0], other)
	for _, tt := range []struct {
		name string
		addr netip.Addr
		cfg  xdp.Config
		want error
		text string
	}{
		{"not ours", netip.MustParseAddr("10.77.0.99"), xdp.Config{}, transport.ErrNoAddr, "does not have the address"},
		{"everybody's", netip.IPv4Unspecified(), xdp.Config{}, transport.ErrNoAddr, "one unicast address"},
		{"loopback", netip.MustParseAddr("127.0.0.1"), xdp.Config{}, xdp.ErrUnsupported, "use the UDP transport"},
		{"no such link", veth.Addrs4[0], xdp.Config{Interface: "nowhere"}, transport.ErrNoAddr, "nowhere"},
		{"another link", veth.Addrs4[0], xdp.Config{Interface: "lo"}, transport.ErrNoAddr, "leave xdp.Config.Interface empty"},
		{"zero copy", veth.Addrs4[0], xdp.Config{ZeroCopy: xdp.ZeroCopyOnly}, xdp.ErrUnsupported, veth.Links[0]},
		{"queue beyond", veth.Addrs4[0], xdp.Config{Queues: 9}, xdp.ErrUnsupported, veth.Links[0]},
		{"mode", veth.Addrs4[0], xdp.Config{Mode: 9}, transport.ErrConfig, "Mode"},
		{"frames", veth.Addrs4[0], xdp.Config{RxFrames: 100}, transport.ErrConfig, "a power of two"},
		{"hop limit", veth.Addrs4[0], xdp.Config{HopLimit: 256}, transport.ErrConfig, "HopLimit"},
		{"spin", veth.Addrs4[0], xdp.Config{Spin: time.Second}, transport.ErrConfig, "Spin"},
		{"busy poll", veth.Addrs4[0], xdp.Config{BusyPoll: time.Hour}, transport.ErrConfig, "BusyPoll"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tryAt(t, p, tt.addr, tt.cfg)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
	require.False(t, attached(t, p), "nothing stays behind")

	// One address has one owner, of whatever kind; and a link has one program.
	first := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	require.ErrorIs(t, tryAt(t, p, veth.Addrs4[0], xdp.Config{}), transport.ErrInUse)
	require.ErrorIs(t, p.Do(0, func() error {
		_, err := udp.Open(veth.Addrs4[0], udp.Config{})
		return err
	}), transport.ErrInUse)
	err := tryAt(t, p, other, xdp.Config{})
	require.ErrorIs(t, err, transport.ErrInUse)
	require.ErrorContains(t, err, "another XDP program or AF_XDP socket has the link")
	require.ErrorContains(t, err, veth.Links[0])
	require.NoError(t, first.Close())
	openAt(t, p, 0, other, xdp.Config{})
}

// attached reports whether a program is on the link of end 0.
func attached(t *testing.T, p *veth.Pair) bool {
	t.Helper()
	l, err := p.Handle(0).LinkByName(veth.Links[0])
	require.NoError(t, err)
	return l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached
}

// Each capability that is missing is named, and no other.
func TestOpenWithoutCapabilities(t *testing.T) {
	p := lab(t, veth.Config{})
	for _, tt := range []struct {
		drop []int
		want string
	}{
		{[]int{unix.CAP_NET_RAW}, "lacks CAP_NET_RAW:"},
		{[]int{unix.CAP_BPF, unix.CAP_SYS_ADMIN}, "lacks CAP_BPF:"},
		{[]int{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}, "lacks CAP_NET_ADMIN:"},
		{[]int{unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_BPF, unix.CAP_SYS_ADMIN}, "lacks CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF:"},
	} {
		t.Run(fmt.Sprint(tt.drop), func(t *testing.T) {
			err := p.Do(0, func() error { // a thread has capabilities of its own, and this one ends here
				if err := drop(tt.drop); err != nil {
					return err
				}
				_, err := xdp.Open(veth.Addrs4[0], xdp.Config{})
				return err
			})
			require.ErrorIs(t, err, transport.ErrPermission)
			require.ErrorIs(t, err, unix.EPERM)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "setcap")
		})
	}
}

// drop takes capabilities from the calling thread.
func drop(numbers []int) error {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return err
	}
	for _, n := range numbers {
		d[n/32].Effective &^= 1 << (n % 32)
		d[n/32].Permitted &^= 1 << (n % 32)
	}
	return unix.Capset(&h, &d[0])
}

// victim opens a Conn, tells so and waits for its end.
func victim() {
	c, err := xdp.Open(veth.Addrs4[0], xdp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("open")
	batch := transport.NewBatch(c, 4)
	for {
		if _, err := c.ReadBatch(batch, true); err != nil {
			return
		}
	}
}

// A process that is killed leaves no program on the link, and the link, the
// address and the queue can be used.
func TestKilled(t *testing.T) {
	p := lab(t, veth.Config{})
	exe, err := os.Executable()
	require.NoError(t, err)
	for range 3 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), victimEnv+"=1")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Do(0, cmd.Start))
		said := make([]byte, 200)
		n, err := out.Read(said)
		require.NoError(t, err)
		require.Equal(t, "open\n", string(said[:n]))
		require.True(t, attached(t, p))
		err = tryAt(t, p, veth.Addrs4[0], xdp.Config{})
		require.ErrorIs(t, err, transport.ErrInUse)

		require.NoError(t, cmd.Process.Signal(unix.SIGKILL))
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit)
		require.Eventually(t, func() bool { return !attached(t, p) }, patience, time.Millisecond)

		a := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
		b := udpAt(t, p, 1, veth.Addrs4[1], udp.Config{})
		exchange(t, a, b)
		require.NoError(t, errors.Join(a.Close(), b.Close()))
	}
}

// exchange sends a packet each way.
func exchange(t testing.TB, a, b transport.Conn) {
	t.Helper()
	for _, c := range [][2]transport.Conn{{a, b}, {b, a}} {
		_, err := c[0].WriteBatch([]transport.Tx{{Data: []byte("packet"), Dst: c[1].LocalAddr(), SrcPort: c[0].SourcePort(1)}})
		require.NoError(t, err)
		batch := transport.NewBatch(c[1], 1)
		_, err = c[1].ReadBatch(batch, true)
		require.NoError(t, err)
		require.Equal(t, "packet", string(batch[0].Data))
		c[1].Release(batch)
	}
}
