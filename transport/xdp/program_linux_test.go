package xdp

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// loaded is the program for the addresses, in the kernel and with a socket to steer
// to on queue 0, which is where test runs pretend to come from.
func loaded(t *testing.T, addrs ...netip.Addr) *steering {
	t.Helper()
	p, err := veth.New(veth.Config{})
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs root: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	var c *Conn
	require.NoError(t, p.Do(0, func() (err error) {
		c, err = Open(veth.Addrs4[0], Config{})
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	s, err := load(addrs, 1, true)
	require.NoError(t, err)
	t.Cleanup(s.close)
	require.NoError(t, s.steer(0, c.queues[0].rings.fd))
	return s
}

// change returns a copy of b with byte i set to v.
func change(b []byte, i int, v byte) []byte {
	b = append([]byte(nil), b...)
	b[i] = v
	return b
}

// tags returns a copy of b with tags behind the hardware addresses.
func tags(b []byte, what ...byte) []byte {
	return append(append(append([]byte(nil), b[:12]...), what...), b[12:]...)
}

func TestProgram(t *testing.T) {
	s := loaded(t, us4, us6, netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("fe80::9"))
	to := func(v6 bool, dst string, n int) []byte {
		s := toUs(v6)
		if dst != "" {
			s.dst = netip.MustParseAddr(dst)
		}
		return frameOf(s, make([]byte, n), 0, 0xc001, 0)
	}
	v4, v6 := to(false, "", 64), to(true, "", 64)
	const ip = etherLen
	dport4, dport6 := ip+ipv4Len+2, ip+ipv6Len+2
	for _, tt := range []struct {
		name  string
		frame []byte
		ours  bool
	}{
		{"IPv4", v4, true},
		{"IPv6", v6, true},
		{"IPv4, second address", to(false, "203.0.113.9", 64), true},
		{"IPv6, second address", to(true, "fe80::9", 64), true},
		{"IPv4, large", to(false, "", 1400), true},
		{"IPv6, large", to(true, "", 1400), true},
		{"IPv4, no UDP payload", to(false, "", 0), true},
		{"IPv6, no UDP payload", to(true, "", 0), true},
		{"junk to our port", append(append([]byte(nil), v4[:ip+ipv4Len+udpLen]...), "not RoCE at all"...), true},
		{"IPv4, tag", tags(v4, 0x81, 0, 0, 77), true},
		{"IPv6, tag", tags(v6, 0x81, 0, 0x60, 77), true},
		{"IPv4, provider's tag", tags(v4, 0x88, 0xa8, 0, 77), true},
		{"IPv4, two tags", tags(v4, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 77), true},
		{"IPv6, two tags", tags(v6, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 77), true},
		{"don't fragment not set", change(v4, ip+6, 0), true},
		{"reserved flag", change(v4, ip+6, 0x80), true}, // the ICRC tells

		{"three tags", tags(v4, 0x81, 0, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9), false},
		{"IPv4, another address", to(false, "192.0.2.9", 64), false},
		{"IPv4, one bit off", change(v4, ip+19, v4[ip+19]^1), false},
		{"IPv4, broadcast", to(false, "255.255.255.255", 64), false},
		{"IPv6, another address", to(true, "2001:db8::9", 64), false},
		{"IPv6, first word off", change(v6, ip+24, 0x21), false},
		{"IPv6, second word off", change(v6, ip+28, 1), false},
		{"IPv6, third word off", change(v6, ip+32, 1), false},
		{"IPv6, multicast", to(true, "ff02::1", 64), false},
		{"first fragment", change(v4, ip+6, 0x20), false},
		{"later fragment", change(v4, ip+7, 0xb9), false},
		{"last fragment, large offset", change(v4, ip+6, 0x10), false},
		{"IPv4 options", change(v4, ip, 0x46), false},
		{"IPv4 header too short", change(v4, ip, 0x44), false},
		{"IP version 6 in IPv4", change(v4, ip, 0x65), false},
		{"IPv4, TCP", change(v4, ip+9, 6), false},
		{"IPv4, ICMP", change(v4, ip+9, 1), false},
		{"IPv6, TCP", change(v6, ip+6, 6), false},
		{"IPv6, ICMPv6", change(v6, ip+6, 58), false},
		{"IPv6, fragment header", change(v6, ip+6, 44), false},
		{"IPv6, hop by hop", change(v6, ip+6, 0), false},
		{"IPv4, DNS", change(change(v4, dport4, 0), dport4+1, 53), false},
		{"IPv4, port one off", change(v4, dport4+1, v4[dport4+1]+1), false},
		{"IPv4, port swapped", change(change(v4, dport4, v4[dport4+1]), dport4+1, v4[dport4]), false},
		{"IPv6, DNS", change(change(v6, dport6, 0), dport6+1, 53), false},
		{"from our port only", change(change(change(v4, dport4, 0xc0), dport4-2, v4[dport4]), dport4-1, v4[dport4+1]), false},
		{"ARP", change(v4, 13, 6), false},
		{"RoCE version 1", change(change(v4, 12, 0x89), 13, 0x15), false},
		{"MPLS", change(change(v4, 12, 0x88), 13, 0x47), false},
		{"length field", change(change(v4, 12, 0), 13, 46), false},
		{"tag before nothing", append(append([]byte(nil), v4[:12]...), 0x81, 0, 0, 7, 8), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := uint32(xdpPass)
			if tt.ours {
				want = xdpRedirect
			}
			got, _, err := s.prog.Test(tt.frame)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	// A frame that ends early is never taken, wherever it ends.
	for _, whole := range [][]byte{v4, v6, tags(v4, 0x81, 0, 0, 77), tags(v6, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 77)} {
		headers := len(whole) - 64
		for n := etherLen; n < headers; n++ {
			got, _, err := s.prog.Test(whole[:n])
			require.NoError(t, err)
			require.EqualValues(t, xdpPass, got, "%d of %d bytes", n, headers)
		}
	}
}

// Without a socket on the queue everything goes to the kernel.
func TestProgramWithoutSocket(t *testing.T) {
	s := loaded(t, us4)
	require.NoError(t, s.sockets.Delete(uint32(0)))
	got, _, err := s.prog.Test(frameOf(toUs(false), make([]byte, 64), 0, 0xc001, 0))
	require.NoError(t, err)
	require.EqualValues(t, xdpPass, got)
}

// The program asks for an address of one family only: the other's packets pass.
func TestProgramOneFamily(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		addr := us4
		if v6 {
			addr = us6
		}
		s := loaded(t, addr)
		for _, other := range []bool{false, true} {
			got, _, err := s.prog.Test(frameOf(toUs(other), make([]byte, 64), 0, roce.Port, 0))
			require.NoError(t, err)
			require.Equal(t, v6 == other, got == xdpRedirect)
		}
	}
}
