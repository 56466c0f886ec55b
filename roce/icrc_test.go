package roce_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/roce"
)

var helloHeaders = roce.Headers{
	Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
	SrcPort: 0xC123, DstPort: roce.Port, Frag: roce.DontFragment,
}

const helloPacket = "0470ffff 00000011 80000001 68656c6c6f 000000"

// vectors are whole IP packets with the ICRC that other implementations made.
var vectors = map[string]string{
	"§2.2 IPv4": `45000034 00004000 4011b6b5 c0000201 c0000202 c12312b7 00200000
		0470ffff 00000011 80000001 68656c6c6f 000000 9b3a0f82`,
	"§2.3 IPv6": `60012345 00201140 20010db8000000000000000000000001 20010db8000000000000000000000002
		c12312b7 00200000 0470ffff 00000011 80000001 68656c6c6f 000000 4f5a3641`,
	"§2.4 ConnectX-4 Lx CNP": `45c2003c 718c4000 40119161 0a001101 0a001201 000012b7 00280000
		8100ffff 40000118 00000000 00000000000000000000000000000000 82fd002a`,
	"§2.4 ConnectX-4 Lx ACK": `45020030 36314000 40118e50 c0a8fa72 c0a8fa75 cf2112b7 001c0000
		1140ffff 00000d1e 00466f1e 000e6f02 8d64383d`,
	"§2.4 ConnectX ACK": `45020030 9d4e4000 401119e4 c0aa0102 c0aa0132 fa4f12b7 001c0000
		1140ffff 00deaded 00cf7bf7 00000002 59caeaf7`,
	"IPv4 UC SEND_ONLY, id 1144": `45010040 04784000 4011b4d5 c0a80007 c0a80007 c00012b7 002caca2
		2460ffff 000000d3 00cf1710 4630818be28935d90e9a95505401be885e50 0000 78f353f3`,
	"IPv6 UC SEND_ONLY, class 226": `6e21face 002c11ff 20220000000000000000000000001023 20230000000000000000000000001024
		c00012b7 002ce7c5 2460ffff 000000d3 00cf1710 4630818be28935d90e9a95505401be885e50 0000 3e5b743b`,
}

func TestVectors(t *testing.T) { // §2.2, §2.3, §2.4, §9.1 R23, §9.4 A10
	for name, s := range vectors {
		t.Run(name, func(t *testing.T) {
			ip := unhex(t, s)
			var f roce.Frame
			require.NoError(t, roce.DecodeFrame(roce.LinkRaw, ip, &f))
			require.True(t, f.Check(f.Payload))
			var p roce.Packet
			require.NoError(t, p.Decode(f.Payload))
			again := p.Append(garbage(p.Len()))
			f.Seal(again)
			require.Equal(t, f.Payload, again)

			id, ok := f.CheckAnyID(f.Payload, 0xFFFF)
			require.True(t, ok)
			require.Equal(t, f.ID, id)
			for i := range f.Payload { // one bit anywhere in the packet, but the masked byte
				bad := append([]byte(nil), f.Payload...)
				bad[i] ^= 0x10
				require.Equal(t, i == 4, f.Check(bad), "byte %d", i)
			}
		})
	}
}

func TestMaskedFields(t *testing.T) { // §2.1
	ip4, ip6 := unhex(t, vectors["§2.2 IPv4"]), unhex(t, vectors["§2.3 IPv6"])
	for _, c := range []struct {
		ip     []byte
		masked []int
	}{
		// TOS, TTL, header checksum, UDP checksum, BTH byte 4
		{ip4, []int{1, 8, 10, 11, 26, 27, 32}},
		// class and flow label, hop limit, UDP checksum, BTH byte 4
		{ip6, []int{0, 1, 2, 3, 7, 46, 47, 52}},
	} {
		masked := map[int]bool{}
		for _, i := range c.masked {
			masked[i] = true
		}
		for i := range c.ip {
			bad := append([]byte(nil), c.ip...)
			bad[i] ^= 0x01
			var f roce.Frame
			if err := roce.DecodeFrame(roce.LinkRaw, bad, &f); err != nil {
				require.False(t, masked[i], "byte %d: %v", i, err)
				continue
			}
			require.Equal(t, masked[i], f.Check(f.Payload), "byte %d", i)
		}
	}
}

func TestICRCForms(t *testing.T) {
	pkt := unhex(t, helloPacket)
	h := helloHeaders
	require.Equal(t, uint32(0x820F3A9B), h.ICRC(pkt)) // §2.2
	h.Src, h.Dst = netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.2")
	require.Equal(t, uint32(0x820F3A9B), h.ICRC(pkt), "mapped addresses are IPv4")
	h.Src, h.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2%eth0")
	require.Equal(t, uint32(0x41365A4F), h.ICRC(pkt), "§2.3; a zone is not on the wire")
	require.NotPanics(t, func() { new(roce.Headers).ICRC(pkt) })
}

func TestCheckShort(t *testing.T) {
	h := helloHeaders
	for n := range roce.BTHLen + roce.ICRCLen {
		b := make([]byte, n)
		require.False(t, h.Check(b))
		_, ok := h.CheckAnyID(b, 0xFFFF)
		require.False(t, ok)
		h.ICRC(b)
	}
	// Longer than any UDP payload over IPv4.
	b := make([]byte, 65508)
	h.Seal(b)
	b[9000] ^= 1
	_, ok := h.CheckAnyID(b, 0xFFFF)
	require.False(t, ok)
}

// plainICRC is the definition of §2.1, byte by byte.
func plainICRC(h roce.Headers, pkt []byte) uint32 {
	b := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	udp := uint16(8 + len(pkt) + 4)
	if h.Src.Is4() {
		b = append(b, 0x45, 0xFF)
		b = binary.BigEndian.AppendUint16(b, 20+udp)
		b = binary.BigEndian.AppendUint16(b, h.ID)
		b = binary.BigEndian.AppendUint16(b, h.Frag)
		b = append(b, 0xFF, 17, 0xFF, 0xFF)
	} else {
		b = append(b, 0x6F, 0xFF, 0xFF, 0xFF)
		b = binary.BigEndian.AppendUint16(b, udp)
		b = append(b, 17, 0xFF)
	}
	b = append(b, h.Src.AsSlice()...)
	b = append(b, h.Dst.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, h.SrcPort)
	b = binary.BigEndian.AppendUint16(b, h.DstPort)
	b = binary.BigEndian.AppendUint16(b, udp)
	b = append(b, 0xFF, 0xFF)
	at := len(b)
	b = append(b, pkt...)
	b[at+4] = 0xFF
	return crc32.ChecksumIEEE(b)
}

func anyHeaders(t *rapid.T) roce.Headers {
	n := rapid.SampledFrom([]int{4, 16}).Draw(t, "family")
	addr := func(label string) netip.Addr {
		b := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
		if n == 16 {
			b[0] |= 0x20 // not an IPv4-mapped one
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	return roce.Headers{
		Src: addr("src"), Dst: addr("dst"),
		SrcPort: rapid.Uint16().Draw(t, "sport"), DstPort: rapid.Uint16().Draw(t, "dport"),
		ID: rapid.Uint16().Draw(t, "id"), Frag: rapid.Uint16().Draw(t, "frag"),
	}
}

func TestICRCMatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHeaders(t)
		pkt := rapid.SliceOfN(rapid.Byte(), roce.BTHLen, 200).Draw(t, "packet")
		require.Equal(t, plainICRC(h, pkt), h.ICRC(pkt))
		sealed := append(pkt, 1, 2, 3, 4)
		h.Seal(sealed)
		require.True(t, h.Check(sealed))
		require.Equal(t, plainICRC(h, pkt), binary.LittleEndian.Uint32(sealed[len(pkt):]))
	})
}

// CheckAnyID against trying all 65536 identifications.
func TestCheckAnyIDBruteForce(t *testing.T) {
	for _, n := range []int{16, 17, 256 + 28, 4096 + 28} {
		for _, flip := range []uint32{0, 1, 0x80000000, 0x00010001} {
			pkt := make([]byte, n)
			for i := range pkt {
				pkt[i] = byte(i * 7)
			}
			h := helloHeaders
			h.ID = 0xBEEF
			h.Seal(pkt)
			icrc := binary.LittleEndian.Uint32(pkt[n-4:]) ^ flip
			binary.LittleEndian.PutUint32(pkt[n-4:], icrc)

			want, found := uint16(0), false
			if n < 100 || flip == 0 {
				for id := range 1 << 16 {
					h.ID = uint16(id)
					if h.ICRC(pkt[:n-4]) == icrc {
						require.False(t, found, "two identifications explain one ICRC")
						want, found = uint16(id), true
					}
				}
			}
			h.ID = 0x1234
			got, ok := h.CheckAnyID(pkt, 0xFFFF)
			require.Equal(t, found, ok, "length %d flip %#x", n, flip)
			require.Equal(t, want, got)
		}
	}
}

func TestCheckAnyIDProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHeaders(t)
		size := rapid.SampledFrom([]int{16, 20, 44, 255, 1068, 4132, 9000, 65500}).Draw(t, "size") + rapid.IntRange(0, 7).Draw(t, "more")
		pkt := make([]byte, size)
		copy(pkt, rapid.SliceOfN(rapid.Byte(), 16, 64).Draw(t, "bytes"))
		h.Seal(pkt)
		sealedID, is4 := h.ID, h.Src.Is4()

		h.ID = rapid.Uint16().Draw(t, "guess")
		id, ok := h.CheckAnyID(pkt, 0xFFFF)
		require.True(t, ok)
		if !is4 {
			require.Zero(t, id)
			_, ok = h.CheckAnyID(pkt, 0)
			require.True(t, ok, "nothing is hidden over IPv6")
			pkt[size-1] ^= 1
			_, ok = h.CheckAnyID(pkt, 0xFFFF)
			require.False(t, ok)
			return
		}
		require.Equal(t, sealedID, id)

		limit := rapid.Uint16().Draw(t, "limit")
		_, ok = h.CheckAnyID(pkt, limit)
		require.Equal(t, sealedID <= limit, ok)
		h.ID = sealedID
		_, ok = h.CheckAnyID(pkt, limit)
		require.Equal(t, sealedID <= limit, ok, "a first guess is no excuse")

		// An error burst of at most 32 bits is never explained by an identification
		// below 128 more than 30 bytes away.
		if sealedID <= 127 {
			pkt[len(pkt)-5-rapid.IntRange(0, 3).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
			_, ok = h.CheckAnyID(pkt, 127)
			require.False(t, ok)
		}
	})
}

func ExampleHeaders_Seal() {
	h := roce.Headers{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		SrcPort: 0xC123, DstPort: roce.Port, Frag: roce.DontFragment,
	}
	p := roce.Packet{Opcode: roce.OpSendOnly, Mig: true, PKey: roce.PKeyDefault, DestQP: 0x11, PSN: 1, AckReq: true}
	p.SetPayload([]byte("hello"))
	wire := p.Append(nil)
	h.Seal(wire)
	fmt.Printf("% x\n", wire[len(wire)-roce.ICRCLen:])
	fmt.Println(h.Check(wire))

	h.ID = 3 // what a socket did not show
	h.Seal(wire)
	h.ID = 0
	fmt.Println(h.CheckAnyID(wire, 127))
	// Output:
	// 9b 3a 0f 82
	// true
	// 3 true
}
