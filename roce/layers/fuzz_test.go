package layers_test

import (
	"testing"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/layers"
)

// Whatever is a packet to package roce is one here, with the same contents, and
// what is not is an error layer.
func FuzzPacket(f *testing.F) {
	seen := map[roce.Opcode]bool{}
	eachRoCE(f, func(frame []byte, p *roce.Packet) {
		if !seen[p.Opcode] {
			seen[p.Opcode] = true
			f.Add(frame)
		}
	})
	f.Fuzz(func(t *testing.T, frame []byte) {
		pkt := gopacket.NewPacket(frame, glayers.LayerTypeEthernet, gopacket.NoCopy)
		udp, ok := pkt.TransportLayer().(*glayers.UDP)
		if !ok || udp.DstPort != roce.Port || len(udp.Payload) == 0 {
			return
		}
		var want roce.Packet
		err := want.Decode(udp.Payload)
		if udp.Length > 0 && int(udp.Length) != len(udp.Payload)+8 {
			require.Nil(t, pkt.Layer(layers.LayerTypeICRC), "what is not all there has no ICRC")
			return
		}
		if err != nil {
			require.NotNil(t, pkt.ErrorLayer())
			require.Nil(t, pkt.Layer(layers.LayerTypeBTH))
			return
		}
		require.Nil(t, pkt.ErrorLayer())
		got, icrc := collect(pkt.Layers())
		require.Equal(t, want.String(), got.String())
		require.Equal(t, want.AppendHeader(nil), got.AppendHeader(nil))
		require.Len(t, icrc.Pad, int(want.Pad))

		var fr roce.Frame
		if roce.DecodeFrame(roce.LinkEthernet, frame, &fr) == nil && icrc.Verdict != layers.Unchecked {
			require.Equal(t, fr.Check(fr.Payload), icrc.Verdict == layers.Good)
		}
	})
}
