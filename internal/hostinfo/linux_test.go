//go:build linux

package hostinfo

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/internal/hosttest"
)

func TestKernelRelease(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)
	require.Equal(t, string(b), kernelRelease()+"\n")
}

// UDP_SEGMENT came with 4.18, UDP_GRO with 5.0; the limit is 64 segments, 128
// on newer kernels.
func TestTrains(t *testing.T) {
	hosttest.NeedLinux(t, 5, 0)
	got, err := probeTrains()
	require.NoError(t, err)
	require.NoError(t, got.gso)
	require.NoError(t, got.gro)
	require.Contains(t, []int{64, 128}, got.maxSegments)
}

// A receiver that did not ask for trains gets packets, and the probe sees the
// difference.
func TestCutTrainIsSeen(t *testing.T) {
	hosttest.NeedLinux(t, 4, 18)
	tx, rx, to, err := udpPair()
	require.NoError(t, err)
	defer closeAll(tx, rx)
	require.NoError(t, sendTrain(tx, to, probeSegments))
	require.ErrorIs(t, receiveTrain(rx), errCut)
}

func TestTooLongTrainIsRefused(t *testing.T) {
	tx, rx, to, err := udpPair()
	require.NoError(t, err)
	defer closeAll(tx, rx)
	require.Error(t, sendTrain(tx, to, mostSegments))
}

func TestMMsg(t *testing.T) { require.NoError(t, probeMMsg()) }

// The granted buffer is what another socket of ours gets.
func TestBuffers(t *testing.T) {
	for i := range directions {
		d := &directions[i]
		t.Run(d.name, func(t *testing.T) {
			limit := readNumber("/proc/sys/net/core/" + d.limit)
			require.Positive(t, limit)

			got, forced, err := d.grow(limit)
			require.NoError(t, err)
			require.Equal(t, 2*limit, got, "the kernel doubles what is asked for")
			require.False(t, forced)

			got, forced, err = d.grow(2 * limit)
			require.NoError(t, err)
			require.Equal(t, effective().has(unix.CAP_NET_ADMIN), forced)
			if forced {
				require.Equal(t, 4*limit, got)
			} else {
				require.Equal(t, 2*limit, got)
			}
			c := d.check()
			require.Equal(t, c.State == OK, forced || 2*limit >= wantBuffer)
		})
	}
}

// Unconnected with path MTU discovery: identification 0 and DF, on every kernel
// met so far (§1.5).
func TestIdent(t *testing.T) {
	got, err := probeIdent()
	if !effective().has(unix.CAP_NET_RAW) {
		require.ErrorIs(t, err, unix.EPERM)
		require.Equal(t, Unknown, judgeIdent(got, err).State)
		t.Skip("no CAP_NET_RAW to see headers with")
	}
	require.NoError(t, err)
	require.Equal(t, ident{id: 0, df: true}, got)
}

func TestIdentJudgement(t *testing.T) {
	tests := []struct {
		name string
		got  ident
		err  error
		want State
	}{
		{"as needed", ident{0, true}, nil, OK},
		{"numbered", ident{7, true}, nil, Missing},
		{"may be fragmented", ident{0, false}, nil, Missing},
		{"not permitted", ident{}, unix.EPERM, Unknown},
		{"not seen", ident{}, unix.EAGAIN, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, judgeIdent(tt.got, tt.err).State)
		})
	}
}

func TestParseIdent(t *testing.T) {
	header := []byte{0x45, 0, 0, 32, 0xca, 0xfe, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1}
	got, err := parseIdent(header)
	require.NoError(t, err)
	require.Equal(t, ident{id: 0xcafe, df: true}, got)

	_, err = parseIdent(header[:19])
	require.Error(t, err)
	header[0] = 0x65
	_, err = parseIdent(header)
	require.Error(t, err)
}

func TestXDPJudgement(t *testing.T) {
	const all = capabilities(1<<unix.CAP_NET_RAW | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_BPF)
	const old = capabilities(1<<unix.CAP_NET_RAW | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN)
	require.Equal(t, OK, judgeXDP(nil, all).State)
	require.Equal(t, OK, judgeXDP(nil, old).State)
	require.Equal(t, Limited, judgeXDP(nil, 1<<unix.CAP_NET_RAW).State)
	require.Contains(t, judgeXDP(unix.EPERM, 0).Remedy, "CAP_NET_RAW")
	require.Contains(t, judgeXDP(unix.EAFNOSUPPORT, all).Remedy, "CONFIG_XDP_SOCKETS")
}

func TestCapabilities(t *testing.T) {
	c := parseCapabilities("Name:\tx\nCapPrm:\tffff\nCapEff:\t0000000000003000\n")
	require.True(t, c.has(unix.CAP_NET_RAW))
	require.True(t, c.has(unix.CAP_NET_ADMIN))
	require.False(t, c.has(unix.CAP_BPF))
	require.Zero(t, parseCapabilities("CapEff:\tmany\n"))
	require.Zero(t, parseCapabilities(""))
}

func TestHugePages(t *testing.T) {
	const mem = "MemTotal:  10 kB\nHugePages_Total:       3\nHugepagesize:       2048 kB\n"
	c := judgeHugePages("always [madvise] never\n", mem)
	require.Equal(t, Check{Name: "huge_pages", State: OK, Value: "transparent: madvise; reserved: 3 of 2048 kB"}, c)
	require.Equal(t, Missing, judgeHugePages("always madvise [never]\n", mem).State)
	require.Equal(t, Missing, judgeHugePages("", "").State)
}

func TestParseHolders(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the tables below were printed by a little-endian machine")
	}
	const udp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  271: 0100007F:12B6 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11111 2 0000000000000000 0
  272: 0200007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 22222 2 0000000000000000 0
  272: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 33333 2 0000000000000000 0
 short line
  273: 0000zz00:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 44444 2 0000000000000000 0
`
	const udp6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 7271: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 55555 2 0000000000000000 0
 7272: 0000000000000000FFFF00000100007F:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 66666 2 0000000000000000 0
`
	require.Equal(t, []holder{
		{netip.MustParseAddr("127.0.0.2"), "22222"},
		{netip.IPv4Unspecified(), "33333"},
	}, parseHolders(udp, 4791))
	require.Equal(t, []holder{
		{netip.IPv6Loopback(), "55555"},
		{netip.MustParseAddr("127.0.0.1"), "66666"}, // ::ffff:127.0.0.1
	}, parseHolders(udp6, 4791))
	require.Empty(t, parseHolders(udp, 4792))
}

// A socket on all addresses of both families keeps IPv4 out, one of IPv6 alone
// does not; the system's tables show both alike.
func TestDualStackHolder(t *testing.T) {
	if ipv6Check().State != OK {
		t.Skip("no IPv6 on this host")
	}
	for _, only := range []int{0, 1} {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only))
		require.NoError(t, unix.Bind(fd, &unix.SockaddrInet6{}))
		sa, err := unix.Getsockname(fd)
		require.NoError(t, err)
		port := uint16(sa.(*unix.SockaddrInet6).Port)

		require.Equal(t, Missing, portCheck("p", netip.IPv6Unspecified(), port).State)
		c := portCheck("p", netip.MustParseAddr("127.0.0.1"), port)
		if only == 1 {
			require.Equal(t, OK, c.State)
		} else {
			require.Equal(t, Missing, c.State)
			require.Contains(t, c.Value, "this process")
		}
		closeAll(fd)
	}
}

func TestSocketOwnerUnseen(t *testing.T) {
	owner := socketOwner("18446744073709551615")
	if rxeLoaded() {
		require.Contains(t, owner, "rdma_rxe")
	} else {
		require.Contains(t, owner, "may not see")
	}
}

func TestSize(t *testing.T) {
	require.Equal(t, "8 MiB", size(8<<20))
	require.Equal(t, "208 KiB", size(212992))
	require.Equal(t, "1.5 MiB", size(3<<19))
	require.Equal(t, "12 B", size(12))
}
