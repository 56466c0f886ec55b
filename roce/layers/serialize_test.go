package layers_test

import (
	"net"
	"testing"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/layers"
)

var fix = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// network returns IP and UDP layers for the worked examples of §2.2 and §2.3.
func network(t *testing.T, v6 bool) (ip interface {
	gopacket.NetworkLayer
	gopacket.SerializableLayer
}, udp *glayers.UDP,
) {
	t.Helper()
	udp = &glayers.UDP{SrcPort: 0xC123, DstPort: roce.Port}
	if v6 {
		ip = &glayers.IPv6{
			Version: 6, FlowLabel: 0x12345, HopLimit: 64, NextHeader: glayers.IPProtocolUDP,
			SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8::2"),
		}
	} else {
		ip = &glayers.IPv4{
			Version: 4, Flags: glayers.IPv4DontFragment, TTL: 64, Protocol: glayers.IPProtocolUDP,
			SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{192, 0, 2, 2},
		}
	}
	require.NoError(t, udp.SetNetworkLayerForChecksum(ip))
	return ip, udp
}

func TestSerialize(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		ip, udp := network(t, v6)
		bth := &layers.BTH{Opcode: roce.OpSendOnly, Mig: true, PKey: 0xFFFF, DestQP: 0x11, PSN: 1, AckReq: true}
		require.NoError(t, bth.SetNetworkLayerForICRC(ip, udp))
		want := []byte{0x9B, 0x3A, 0x0F, 0x82} // §2.2
		if v6 {
			want = []byte{0x4F, 0x5A, 0x36, 0x41} // §2.3
		}
		for _, order := range [][]gopacket.SerializableLayer{
			{ip, udp, bth, gopacket.Payload("hello"), &layers.ICRC{}},
			{ip, udp, bth, &layers.ICRC{}, gopacket.Payload("hello")},
		} {
			bth.Pad = 0
			buf := gopacket.NewSerializeBuffer()
			require.NoError(t, gopacket.SerializeLayers(buf, fix, order...))
			b := buf.Bytes()
			require.Equal(t, want, b[len(b)-4:])
			require.Equal(t, []byte("hello\x00\x00\x00"), b[len(b)-12:len(b)-4])
			require.Equal(t, uint8(3), bth.Pad)

			var f roce.Frame
			require.NoError(t, roce.DecodeFrame(roce.LinkRaw, b, &f))
			require.True(t, f.Check(f.Payload))
		}
	}
}

func TestSerializeNeeds(t *testing.T) {
	ip, udp := network(t, false)
	bth := &layers.BTH{Opcode: roce.OpSendOnly}
	err := gopacket.SerializeLayers(gopacket.NewSerializeBuffer(), fix, bth, &layers.ICRC{})
	require.ErrorContains(t, err, "call SetNetworkLayerForICRC")
	require.ErrorContains(t, bth.SetNetworkLayerForICRC(nil, udp), "the ICRC covers")
	require.ErrorContains(t, bth.SetNetworkLayerForICRC(ip, nil), "the ICRC covers")
	require.Error(t, bth.SetNetworkLayerForICRC(&glayers.IPv4{SrcIP: net.IP{1, 2, 3, 4}, DstIP: net.IP{1, 2, 3, 4}, IHL: 6}, udp))
	require.NoError(t, bth.SetNetworkLayerForICRC(ip, udp))
	err = gopacket.SerializeLayers(gopacket.NewSerializeBuffer(), fix, bth)
	require.ErrorContains(t, err, "serialize an ICRC layer")

	// Without an ICRC layer the packet is padded all the same.
	bth = &layers.BTH{Opcode: roce.OpSendOnly}
	buf := gopacket.NewSerializeBuffer()
	lengths := gopacket.SerializeOptions{FixLengths: true}
	require.NoError(t, gopacket.SerializeLayers(buf, lengths, bth, gopacket.Payload{1, 2}))
	require.Equal(t, []byte{1, 2, 0, 0}, buf.Bytes()[roce.BTHLen:])
	require.Equal(t, uint8(2), bth.Pad)
}
