package roce_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/roce"
)

// A template that has seen any packets sums the headers of the next as one that has
// seen none.
func TestTemplateMatchesBegin(t *testing.T) { // §2.1
	rapid.Check(t, func(t *rapid.T) {
		h := anyHeaders(t)
		var seen []roce.Packet
		var template roce.Template
		for range rapid.IntRange(1, 12).Draw(t, "packets") {
			p := anyPacket(t)
			if len(seen) > 0 && rapid.Bool().Draw(t, "like one before") {
				psn, ask, resv := p.PSN, p.AckReq, p.Resv7
				p = rapid.SampledFrom(seen).Draw(t, "which")
				p.PSN, p.AckReq, p.Resv7 = psn, ask, resv
			}
			if rapid.IntRange(0, 9).Draw(t, "another port") == 0 {
				h.SrcPort = rapid.Uint16().Draw(t, "sport")
			}
			seen = append(seen, p)
			b := p.Append(nil)
			head := b[:p.HeaderLen()]

			id := rapid.Uint16().Draw(t, "id")
			got := template.Begin(&h, id, head, len(b))
			full := h
			full.ID = id
			require.Equal(t, full.Begin(head, len(b)), got)

			icrc := b[len(b)-roce.ICRCLen:]
			got.Add(b[len(head) : len(b)-roce.ICRCLen]).Seal(icrc)
			require.True(t, full.Check(b))
		}
	})
}

// Each opcode with each identification that a train has, over both families.
func TestTemplateIdentifications(t *testing.T) {
	h6 := helloHeaders
	h6.Src, h6.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	h46 := helloHeaders
	h46.Src = netip.MustParseAddr("::ffff:192.0.2.1")
	for _, h := range []roce.Headers{helloHeaders, h6, h46} {
		var template roce.Template
		for op := range 256 {
			p := roce.Packet{Opcode: roce.Opcode(op), Mig: true, PKey: roce.PKeyDefault, DestQP: 0x123456}
			p.SetPayload(make([]byte, 1024))
			if !p.Opcode.Known() {
				continue
			}
			for id := range uint16(128) {
				p.PSN, p.AckReq = roce.PSN(id)*0x10203&roce.PSNMask, id%16 == 0
				b := p.AppendHeader(nil)
				h.ID = id
				want := h.Begin(b, p.Len())
				h.ID = 0xFFFF // of no interest
				require.Equal(t, want, template.Begin(&h, id, b, p.Len()), "%v %d", p.Opcode, id)
			}
		}
	}
}

// What a template that was never used holds is no packet's.
func TestTemplateZero(t *testing.T) {
	var h roce.Headers
	for _, size := range []int{0, roce.BTHLen + roce.ICRCLen, 1 << 16} {
		head := make([]byte, roce.BTHLen)
		require.Equal(t, h.Begin(head, size), new(roce.Template).Begin(&h, 0, head, size))
	}
}

// Packets follow one another through a template: 20 bytes each make the BTH, a
// size, an identification and the ports.
func FuzzTemplate(f *testing.F) {
	seedFrames(f, func(link roce.LinkType, frame []byte) {
		var fr roce.Frame
		if roce.DecodeFrame(link, frame, &fr) == nil && len(fr.Payload) >= roce.BTHLen {
			one := binary.BigEndian.AppendUint16(append([]byte(nil), fr.Payload[:roce.BTHLen]...), uint16(len(fr.Payload)))
			one = binary.BigEndian.AppendUint16(one, fr.ID)
			one = binary.BigEndian.AppendUint16(one, fr.SrcPort)
			one = binary.BigEndian.AppendUint16(one, fr.DstPort)
			two := append(append([]byte(nil), one...), one...)
			two[20+8] ^= 0x80
			two[20+15]++
			f.Add(two, fr.Src.Is4())
		}
	})
	f.Fuzz(func(t *testing.T, b []byte, v4 bool) {
		h := helloHeaders
		if !v4 {
			h.Src, h.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
		}
		var template roce.Template
		for ; len(b) >= 20; b = b[20:] {
			head, size := b[:roce.BTHLen], int(binary.BigEndian.Uint16(b[12:]))
			h.ID = binary.BigEndian.Uint16(b[14:])
			h.SrcPort, h.DstPort = binary.BigEndian.Uint16(b[16:]), binary.BigEndian.Uint16(b[18:])
			require.Equal(t, h.Begin(head, size), template.Begin(&h, h.ID, head, size))
		}
	})
}
