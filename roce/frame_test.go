package roce_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/roce"
)

func TestIPv4(t *testing.T) {
	h := roce.IPv4{
		TOS: 0xC2, TotalLen: 60, ID: 0x718C, Frag: roce.DontFragment, TTL: 64, Protocol: 17,
		Src: netip.MustParseAddr("10.0.17.1"), Dst: netip.MustParseAddr("10.0.18.1"),
	}
	want := unhex(t, vectors["§2.4 ConnectX-4 Lx CNP"])
	require.Equal(t, want[:20], h.Append(garbage(20)))

	var got roce.IPv4
	payload, err := got.Decode(append(want[:60:60], 1, 2, 3)) // link padding behind it
	require.NoError(t, err)
	require.Equal(t, want[20:60], payload)
	require.True(t, got.ChecksumOK())
	require.False(t, got.IsFragment())
	h.Checksum = 0x9161
	require.Equal(t, h, got)
	got.TTL--
	require.False(t, got.ChecksumOK())
	for frag, is := range map[uint16]bool{0: false, 0x4000: false, 0x8000: false, 0x2000: true, 1: true, 0x1FFF: true} {
		require.Equal(t, is, (&roce.IPv4{Frag: frag}).IsFragment())
	}
}

func TestIPv4Errors(t *testing.T) {
	good := unhex(t, vectors["§2.2 IPv4"])
	for name, c := range map[string]struct {
		edit func(b []byte) []byte
		want error
	}{
		"short":        {func(b []byte) []byte { return b[:19] }, roce.ErrTruncated},
		"cut":          {func(b []byte) []byte { return b[:51] }, roce.ErrTruncated},
		"version":      {func(b []byte) []byte { b[0] = 0x55; return b }, roce.ErrVersion},
		"ihl 4":        {func(b []byte) []byte { b[0] = 0x44; return b }, roce.ErrLength},
		"options":      {func(b []byte) []byte { b[0] = 0x46; return b }, roce.ErrIPOptions},
		"total length": {func(b []byte) []byte { b[2], b[3] = 0, 19; return b }, roce.ErrLength},
	} {
		var h roce.IPv4
		_, err := h.Decode(c.edit(append([]byte(nil), good...)))
		require.ErrorIs(t, err, c.want, name)
		var fe *roce.FrameError
		require.ErrorAs(t, err, &fe)
	}
}

func TestIPv6(t *testing.T) {
	want := unhex(t, vectors["IPv6 UC SEND_ONLY, class 226"])
	h := roce.IPv6{
		TrafficClass: 226, FlowLabel: 0x1FACE, PayloadLen: 44, NextHeader: 17, HopLimit: 255,
		Src: netip.MustParseAddr("2022::1023"), Dst: netip.MustParseAddr("2023::1024"),
	}
	require.Equal(t, want[:40], h.Append(garbage(40)))
	var got roce.IPv6
	payload, err := got.Decode(want)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, want[40:], payload)

	_, err = got.Decode(want[:39])
	require.ErrorIs(t, err, roce.ErrTruncated)
	payload, err = got.Decode(want[:50])
	require.ErrorIs(t, err, roce.ErrTruncated)
	require.Len(t, payload, 10)
	_, err = got.Decode(append([]byte{0x45}, want[1:]...))
	require.ErrorIs(t, err, roce.ErrVersion)
}

func TestUDPChecksum(t *testing.T) {
	for _, name := range []string{"IPv4 UC SEND_ONLY, id 1144", "IPv6 UC SEND_ONLY, class 226"} {
		ip := unhex(t, vectors[name])
		var f roce.Frame
		require.NoError(t, roce.DecodeFrame(roce.LinkRaw, ip, &f))
		segment := ip[len(ip)-int(f.UDPLen):]
		want := binary.BigEndian.Uint16(segment[6:])
		require.Equal(t, want, roce.UDPChecksum(f.Src, f.Dst, segment), "the field itself does not count")
		clear(segment[6:8])
		require.Equal(t, want, roce.UDPChecksum(f.Src, f.Dst, segment))
		mapped := netip.AddrFrom16(f.Src.As16())
		require.Equal(t, want, roce.UDPChecksum(mapped, f.Dst, segment))
	}
	rapid.Check(t, func(t *rapid.T) { // against a plain sum in 64 bits
		h := anyHeaders(t)
		b := rapid.SliceOfN(rapid.Byte(), 8, 64).Draw(t, "segment")
		s := uint64(17 + len(b))
		for _, p := range [][]byte{h.Src.AsSlice(), h.Dst.AsSlice(), b[:6], append(b[8:len(b):len(b)], make([]byte, len(b)&1)...)} {
			for ; len(p) > 0; p = p[2:] {
				s += uint64(binary.BigEndian.Uint16(p))
			}
		}
		want := ^uint16(s % 0xFFFF) // never 0
		require.Equal(t, want, roce.UDPChecksum(h.Src, h.Dst, b))
	})
}

func TestUDP(t *testing.T) {
	var h roce.UDP
	payload, err := h.Decode(unhex(t, "c12312b7 000b0102 aabbcc"))
	require.NoError(t, err)
	require.Equal(t, roce.UDP{SrcPort: 0xC123, DstPort: 4791, Len: 11, Checksum: 0x0102}, h)
	require.Equal(t, []byte{0xAA, 0xBB, 0xCC}, payload)
	require.Equal(t, unhex(t, "c12312b7 000b0102"), h.Append(garbage(8)))
	for s, want := range map[string]error{
		"c12312b7 000b01":            roce.ErrTruncated,
		"c12312b7 00070102":          roce.ErrLength,
		"c12312b7 00000102":          roce.ErrLength,
		"c12312b7 00090102 aabb":     roce.ErrLength, // bytes behind the datagram, inside the IP packet
		"c12312b7 000d0102 aabbccdd": roce.ErrTruncated,
	} {
		_, err := h.Decode(unhex(t, s))
		require.ErrorIs(t, err, want, s)
	}
}

// ethernet puts tags and an EtherType before an IP packet, and pads to 60 bytes.
func ethernet(ip []byte, tags ...uint16) []byte {
	b := []byte{0x52, 0x54, 0, 0x77, 0, 2, 0x52, 0x54, 0, 0x77, 0, 1}
	for i, tag := range tags {
		tpid := uint16(0x8100)
		if i == 0 && len(tags) > 1 {
			tpid = 0x88A8
		}
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, tpid), tag)
	}
	ether := uint16(0x0800)
	if ip[0]>>4 == 6 {
		ether = 0x86DD
	}
	b = append(binary.BigEndian.AppendUint16(b, ether), ip...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

func TestLinkTypes(t *testing.T) {
	for _, name := range []string{"§2.2 IPv4", "§2.3 IPv6"} {
		ip := unhex(t, vectors[name])
		ether := ethernet(ip)[12:14]
		sll := append(unhex(t, "0000 0001 0006 525400770001 0000"), append(ether, ip...)...)
		sll2 := append(append(append([]byte(nil), ether...), unhex(t, "0000 00000003 0001 00 06 525400770001 0000")...), ip...)
		family := append([]byte{2, 0, 0, 0}, ip...)
		for link, frame := range map[roce.LinkType][]byte{
			roce.LinkEthernet: ethernet(ip),
			roce.LinkRaw:      ip, roce.LinkRawBSD: ip, roce.LinkRawOpen: ip, roce.LinkIPv4: ip, roce.LinkIPv6: ip,
			roce.LinkSLL: sll, roce.LinkSLL2: sll2, roce.LinkNull: family, roce.LinkLoop: family,
		} {
			var f roce.Frame
			require.NoError(t, roce.DecodeFrame(link, frame, &f), "link type %d", link)
			require.True(t, f.Check(f.Payload), "link type %d", link)
			require.Equal(t, link, f.Link)
			require.Equal(t, ip, f.IP[:len(ip)])
			require.Zero(t, f.Tags)
		}
	}
	var f roce.Frame
	require.ErrorIs(t, roce.DecodeFrame(105, make([]byte, 100), &f), roce.ErrLinkType)
}

func TestVLAN(t *testing.T) { // §9.1 R28
	ip := unhex(t, vectors["§2.2 IPv4"])
	for _, tags := range [][]uint16{{0x6064}, {0x0005, 0x6064}, {1, 2, 3, 0x6064}} {
		var f roce.Frame
		frame := ethernet(ip, tags...)
		require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, frame, &f))
		require.Equal(t, len(tags), int(f.Tags))
		require.Equal(t, uint16(0x6064), f.VLAN)
		require.True(t, f.Check(f.Payload))
		for n := range 14 + 4*len(tags) {
			require.ErrorIs(t, roce.DecodeFrame(roce.LinkEthernet, frame[:n], &f), roce.ErrTruncated)
		}
	}
}

func TestEthernetPadding(t *testing.T) { // §1.1: the UDP length counts, not the frame's
	frame := ethernet(unhex(t, vectors["§2.4 ConnectX ACK"]))
	for _, trailer := range []int{0, 1, 4, 64, 1000} {
		var f roce.Frame
		require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, append(frame[:len(frame):len(frame)], make([]byte, trailer)...), &f))
		require.Len(t, f.Payload, 20)
		require.True(t, f.Check(f.Payload))
	}
}

func TestFrameRefusals(t *testing.T) {
	ip4, ip6 := unhex(t, vectors["§2.2 IPv4"]), unhex(t, vectors["§2.3 IPv6"])
	edit := func(b []byte, at int, v ...byte) []byte {
		b = append([]byte(nil), b...)
		copy(b[at:], v)
		return ethernet(b)
	}
	// ext puts an IPv6 extension header of one kind before the rest.
	ext := func(next byte, header ...byte) []byte {
		b := append(append(append([]byte(nil), ip6[:40]...), header...), ip6[40:]...)
		b[6] = next
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		return ethernet(b)
	}
	options := append(append(append([]byte{0x46}, ip4[1:20]...), 1, 1, 1, 0), ip4[20:]...)
	options[3] += 4
	v1 := ethernet(ip4)
	v1[12], v1[13] = 0x89, 0x15

	for name, c := range map[string]struct {
		frame []byte
		want  error
		ours  bool // known to go to port 4791
	}{
		"RoCEv1":                 {v1, roce.ErrRoCEv1, false},
		"RoCEv1 tagged":          {append(append(v1[:12:12], 0x81, 0, 0, 5), v1[12:]...), roce.ErrRoCEv1, false},
		"ARP":                    {append(v1[:12:12], 0x08, 0x06, 0, 0), roce.ErrNotRoCE, false},
		"802.3 length":           {append(v1[:12:12], 0x00, 0x26, 0x42, 0x42), roce.ErrNotRoCE, false},
		"TCP":                    {edit(ip4, 9, 6), roce.ErrNotRoCE, false},
		"TCP over IPv6":          {edit(ip6, 6, 6), roce.ErrNotRoCE, false},
		"other port":             {edit(ip4, 22, 0, 53), roce.ErrNotRoCE, false},
		"first fragment":         {edit(ip4, 6, 0x20, 0), roce.ErrFragment, true},
		"later fragment":         {edit(ip4, 6, 0x00, 9), roce.ErrFragment, false},
		"fragment of TCP":        {edit(edit(ip4, 9, 6)[14:], 6, 0x20, 0), roce.ErrNotRoCE, false},
		"options":                {ethernet(options), roce.ErrIPOptions, true},
		"options, cut":           {ethernet(options)[:14+22], roce.ErrIPOptions, false},
		"IP length 19":           {edit(ip4, 2, 0, 19), roce.ErrLength, false},
		"UDP length 7":           {edit(ip4, 24, 0, 7), roce.ErrLength, true},
		"UDP length short":       {edit(ip4, 24, 0, 31), roce.ErrLength, true},
		"UDP length long":        {edit(ip4, 24, 0, 33), roce.ErrTruncated, true},
		"other port, bad length": {edit(edit(ip4, 24, 0, 33)[14:66], 22, 0, 53), roce.ErrNotRoCE, false},
		"frame cut":              {ethernet(ip4)[:60], roce.ErrTruncated, true},
		"UDP header cut":         {edit(append([]byte(nil), ip4[:27]...), 2, 0, 27)[:41], roce.ErrTruncated, false},
		"IP header cut":          {ethernet(ip4)[:33], roce.ErrTruncated, false},
		"IPv6 cut":               {ethernet(ip6)[:80], roce.ErrTruncated, true},
		"IPv6 hop-by-hop":        {ext(0, 17, 0, 5, 2, 0, 0, 1, 0), roce.ErrIPOptions, true},
		"IPv6 authentication":    {ext(51, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), roce.ErrIPOptions, true},
		"IPv6 first fragment":    {ext(44, 17, 0, 0, 1, 0, 0, 0, 1), roce.ErrFragment, true},
		"IPv6 later fragment":    {ext(44, 17, 0, 0, 9, 0, 0, 0, 1), roce.ErrFragment, false},
		"IPv6 options of TCP":    {ext(0, 6, 0, 5, 2, 0, 0, 1, 0), roce.ErrNotRoCE, false},
		"IPv6 header too long":   {ext(0, 17, 255, 5, 2, 0, 0, 1, 0), roce.ErrNotRoCE, false},
		"IPv6 endless chain":     {ext(60, make([]byte, 8*20)...), roce.ErrNotRoCE, false},
	} {
		t.Run(name, func(t *testing.T) {
			var f roce.Frame
			err := roce.DecodeFrame(roce.LinkEthernet, c.frame, &f)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.ours, f.DstPort == roce.Port)
			require.NotEmpty(t, err.Error())
		})
	}
}

// With ErrTruncated what there is of the packet can still be looked at.
func TestTruncatedFrame(t *testing.T) {
	frame := ethernet(unhex(t, vectors["§2.2 IPv4"]))
	for n := 42; n < 66; n++ {
		var f roce.Frame
		require.ErrorIs(t, roce.DecodeFrame(roce.LinkEthernet, frame[:n], &f), roce.ErrTruncated)
		require.Equal(t, frame[42:n], append([]byte{}, f.Payload...))
		require.Equal(t, uint16(32), f.UDPLen)
		require.Equal(t, "192.0.2.2", f.Dst.String())
	}
}

func TestNoFramePanics(t *testing.T) {
	links := []roce.LinkType{0, 1, 12, 14, 101, 108, 113, 228, 229, 276, 99}
	seeds := [][]byte{ethernet(unhex(t, vectors["§2.2 IPv4"]), 5), ethernet(unhex(t, vectors["§2.3 IPv6"]))}
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte(nil), rapid.SampledFrom(seeds).Draw(t, "frame")...)
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "value")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		var f roce.Frame
		err := roce.DecodeFrame(rapid.SampledFrom(links).Draw(t, "link"), b, &f)
		require.LessOrEqual(t, len(f.Payload), len(b))
		if err == nil {
			require.Len(t, f.Payload, int(f.UDPLen)-8)
			f.Check(f.Payload)
		}
	})
}
