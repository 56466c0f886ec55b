package xdp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

var (
	us4, peer4 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	us6, peer6 = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	macUs      = [6]byte{2, 0, 0, 0, 0, 1}
	macPeer    = [6]byte{2, 0, 0, 0, 0, 2}
)

// toUs is the path from the peer.
func toUs(v6 bool) shape {
	s := shape{src: peer4, dst: us4, srcMAC: macPeer, dstMAC: macUs, hopLimit: 64, mtu: 9000}
	if v6 {
		s.src, s.dst = peer6, us6
	}
	return s
}

// frameOf builds a frame around pkt.
func frameOf(s shape, pkt []byte, id, port uint16, tos uint8) []byte {
	b := make([]byte, headroom+len(pkt))
	copy(b[headroom:], pkt)
	return b[newTemplate(&s).put(b, headroom, len(pkt), id, port, tos):]
}

// sealed is a whole packet with n bytes of payload.
func sealed(s shape, id, port uint16, psn roce.PSN, n int) []byte {
	p := roce.Packet{Opcode: roce.OpSendOnly, PKey: 0xFFFF, DestQP: 0x123456, PSN: psn}
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7)
	}
	p.SetPayload(data)
	b := append(p.Append(nil), 0, 0, 0, 0)[:p.Len()]
	h := roce.Headers{Src: s.src, Dst: s.dst, SrcPort: port, DstPort: roce.Port, ID: id, Frag: roce.DontFragment}
	h.Seal(b)
	return b
}

func parserOf(v6 bool) *parser {
	if v6 {
		return &parser{local: us6}
	}
	return &parser{local: us4}
}

// What the template writes, the parser and roce.DecodeFrame read back, checksums
// included.
func TestTemplate(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, tagged := range []bool{false, true} {
			for _, full := range []Checksum{ChecksumZero, ChecksumFull} {
				for _, n := range []int{0, 1, 3, 64, 1023, 4096} {
					t.Run(fmt.Sprint(v6, tagged, full, n), func(t *testing.T) {
						s := toUs(v6)
						s.tagged, s.vlan, s.checksum = tagged, 77, full
						pkt := sealed(s, 0xbeef, 0xc123, 9, n)
						b := frameOf(s, pkt, 0xbeef, 0xc123, 0xb9)
						p := parserOf(v6)
						p.verify = true
						var rx transport.Rx
						require.True(t, p.parse(b, &macUs, &rx))
						require.Equal(t, pkt, rx.Data)
						require.Equal(t, []any{s.src, s.dst, uint16(0xc123), uint8(0xb9), uint8(64)},
							[]any{rx.Src, rx.Dst, rx.SrcPort, rx.TOS, rx.TTL})
						require.Equal(t, !v6, rx.HaveID)
						if !v6 {
							require.EqualValues(t, 0xbeef, rx.ID)
							require.EqualValues(t, roce.DontFragment, rx.Frag)
						}
						require.True(t, p.f.Check(rx.Data))
						require.Equal(t, full == ChecksumFull, p.checksum(!v6) == sumRight)
						require.Equal(t, tagged, p.f.Tags == 1 && p.f.VLAN == 77)
						if full == ChecksumFull {
							udp := p.f.IP[len(p.f.IP)-udpLen-len(pkt):]
							require.Equal(t, roce.UDPChecksum(s.src, s.dst, udp), be.Uint16(udp[6:]))
						}
					})
				}
			}
		}
	}
}

func TestSumBytes(t *testing.T) {
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(i*31 + 200)
	}
	for n := range b {
		want := uint32(0)
		for i, v := range b[:n] {
			want += uint32(v) << (8 * (1 - i%2))
		}
		require.Equal(t, foldSum(want), sumBytes(b[:n]), "%d bytes", n)
	}
	for i := range b {
		b[i] = 0xFF
	}
	require.EqualValues(t, 0xFFFF, sumBytes(b))
}

// Whatever is not a whole packet for us is refused.
func TestParseRefuses(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		s := toUs(v6)
		good := frameOf(s, sealed(s, 0, 0xc001, 1, 100), 0, 0xc001, 0)
		var rx transport.Rx
		p := parserOf(v6)
		require.True(t, p.parse(good, &macUs, &rx))
		require.True(t, p.parse(append(append([]byte(nil), good...), 1, 2, 3), &macUs, &rx), "link padding")
		require.Len(t, rx.Data, 116)
		for n := range good {
			require.False(t, p.parse(good[:n], &macUs, &rx), "cut to %d bytes", n)
		}
		for n := range 20 {
			require.True(t, p.parse(frameOf(s, make([]byte, n), 0, 0xc001, 0), &macUs, &rx), "%d bytes", n)
			require.Len(t, rx.Data, n)
		}
		require.False(t, p.parse(good, &macPeer, &rx), "another station's frame")
		other := parserOf(!v6)
		require.False(t, other.parse(good, &macUs, &rx), "another address")
	}
}

// A single damaged bit is refused by the IPv4 header checksum, the lengths or the
// ICRC; those that are not lie where nothing is covered (§2.1), and no others.
func TestEveryBitOfAFrame(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, full := range []bool{false, true} {
			s := toUs(v6)
			if full {
				s.checksum = ChecksumFull
			}
			good := frameOf(s, sealed(s, 0x1234, 0xc001, 1, 1024), 0x1234, 0xc001, 0)
			p := parserOf(v6)
			p.verify = full
			got := accepted(good, func(b []byte) bool {
				var rx transport.Rx
				return p.parse(b, &macUs, &rx) && p.f.Check(rx.Data)
			})
			require.Equal(t, uncovered(v6, full), got, "v6 %v, UDP checksum %v", v6, full)
		}
	}
}

// accepted returns the bits of a frame that can be turned without notice.
func accepted(frame []byte, ok func([]byte) bool) (bits []int) {
	for bit := range 8 * len(frame) {
		frame[bit/8] ^= 0x80 >> (bit % 8)
		if ok(frame) {
			bits = append(bits, bit)
		}
		frame[bit/8] ^= 0x80 >> (bit % 8)
	}
	return bits
}

// uncovered lists the bits of an untagged frame that no check covers: the sender's
// hardware address; the eight masked bits of the BTH and the UDP checksum itself
// where it is not used; traffic class, flow label and hop limit over IPv6.
func uncovered(v6, full bool) (bits []int) {
	add := func(from, n int) {
		for i := range n {
			bits = append(bits, from+i)
		}
	}
	add(6*8, 48)
	ip, udp := etherLen*8, (etherLen+ipv4Len)*8
	if v6 {
		udp = (etherLen + ipv6Len) * 8
		add(ip+4, 28)
		add(ip+7*8, 8)
	}
	if !full {
		add(udp+6*8, 16)
		add(udp+(udpLen+4)*8, 8)
	}
	return bits
}

// Frames that a local sender did not cut are cut by their ICRCs, whatever their
// packets are, and only those that leave the checksum open.
func TestCutTrain(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, n := range []int{0, 4, 60, 256, 1024, 4096} {
			for _, count := range []int{1, 2, 3, 7} {
				for _, last := range []int{n, n / 2 &^ 3} {
					s := toUs(v6)
					var train []byte
					for i := range count {
						size := n
						if i == count-1 {
							size = last
						}
						train = append(train, sealed(s, uint16(i), 0xc001, roce.PSN(100*i), size)...)
					}
					b := frameOf(s, train, 0, 0xc001, 0)
					p := parserOf(v6)
					p.trains = true
					var rx transport.Rx
					require.True(t, p.parse(b, &macUs, &rx))
					require.Zero(t, rx.Seg, "no partial checksum")
					leaveOpen(b, v6, len(train))
					require.True(t, p.parse(b, &macUs, &rx))
					require.Equal(t, count, rx.Packets(), "v6 %v: %d packets of %d, last %d", v6, count, n, last)
					p.verify = true
					require.True(t, p.parse(b, &macUs, &rx), "an open checksum passes")
				}
			}
		}
	}
}

// leaveOpen writes the checksum of the pseudo-header alone.
func leaveOpen(b []byte, v6 bool, n int) {
	at, addrs := etherLen+ipv4Len, b[etherLen+12:etherLen+ipv4Len]
	if v6 {
		at, addrs = etherLen+ipv6Len, b[etherLen+8:etherLen+ipv6Len]
	}
	be.PutUint16(b[at+6:], foldSum(sumWords(addrs)+protoUDP+uint32(n+udpLen)))
}

// A damaged first packet leaves the frame whole: its ICRC fails in the NIC.
func TestCutTrainDamaged(t *testing.T) {
	s := toUs(false)
	one := sealed(s, 0, 0xc001, 1, 64)
	one[20] ^= 1
	b := frameOf(s, append(one, sealed(s, 1, 0xc001, 2, 64)...), 0, 0xc001, 0)
	leaveOpen(b, false, len(b)-etherLen-ipv4Len-udpLen)
	p := parserOf(false)
	p.trains = true
	var rx transport.Rx
	require.True(t, p.parse(b, &macUs, &rx))
	require.Zero(t, rx.Seg)
}

func FuzzParse(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		s := toUs(v6)
		f.Add(frameOf(s, sealed(s, 0, 0xc001, 1, 64), 0, 0xc001, 0))
		f.Add(frameOf(s, []byte{1}, 0, 0xc001, 0))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v6 := range []bool{false, true} {
			p := parserOf(v6)
			p.verify, p.trains = true, true
			var rx transport.Rx
			if p.parse(b, &macUs, &rx) {
				require.LessOrEqual(t, len(rx.Data), len(b))
				require.Equal(t, p.local, rx.Dst)
				for i := range rx.Packets() {
					_ = rx.Packet(i)
				}
			}
		}
	})
}
