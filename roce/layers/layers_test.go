package layers_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/layers"
)

// eachRoCE calls f with every RoCEv2 frame of the recordings.
func eachRoCE(t testing.TB, f func(frame []byte, want *roce.Packet)) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/pcaps/*.pcap")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		in, err := os.Open(file)
		require.NoError(t, err)
		r, err := dump.NewReader(in)
		require.NoError(t, err)
		for {
			var c dump.Packet
			if err := r.Next(&c); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
			var fr roce.Frame
			var p roce.Packet
			if c.Link == roce.LinkEthernet && roce.DecodeFrame(c.Link, c.Data, &fr) == nil {
				require.NoError(t, p.Decode(fr.Payload))
				f(c.Data, &p)
			}
		}
		require.NoError(t, in.Close())
	}
}

// collect turns layers back into a packet.
func collect(all []gopacket.Layer) (p roce.Packet, icrc *layers.ICRC) {
	for _, l := range all {
		switch l := l.(type) {
		case *layers.BTH:
			p.Opcode, p.SE, p.Mig, p.Pad, p.PKey = l.Opcode, l.SE, l.Mig, l.Pad, l.PKey
			p.FECN, p.BECN, p.Resv6, p.DestQP = l.FECN, l.BECN, l.Resv6, l.DestQP
			p.AckReq, p.Resv7, p.PSN = l.AckReq, l.Resv7, l.PSN
		case *layers.DETH:
			p.DETH = l.DETH
		case *layers.XRCETH:
			p.SRQN, p.SRQNResv = l.SRQN, l.Resv
		case *layers.FETH:
			p.FETH = l.FETH
		case *layers.RETH:
			p.RETH = l.RETH
		case *layers.AtomicETH:
			p.Atomic = l.AtomicETH
		case *layers.AETH:
			p.AETH = l.AETH
		case *layers.AtomicAckETH:
			p.AtomicAck = l.Orig
		case *layers.ImmDt:
			p.Imm = l.Imm
		case *layers.IETH:
			p.InvKey = l.RKey
		case *layers.CNP:
			p.CNPResv = l.Resv
		case *gopacket.Payload:
			p.Payload = *l
		case *layers.ICRC:
			icrc = l
		}
	}
	return p, icrc
}

// samePacket compares but for empty against nil payloads.
func samePacket(t *testing.T, want, got roce.Packet) {
	t.Helper()
	if len(want.Payload) == 0 && len(got.Payload) == 0 {
		want.Payload, got.Payload = nil, nil
	}
	require.Equal(t, want, got)
}

func TestRecordings(t *testing.T) {
	count := 0
	eachRoCE(t, func(frame []byte, want *roce.Packet) {
		count++
		for _, o := range []gopacket.DecodeOptions{gopacket.Default, gopacket.Lazy, gopacket.NoCopy} {
			pkt := gopacket.NewPacket(frame, glayers.LayerTypeEthernet, o)
			require.NotNil(t, pkt.Layer(layers.LayerTypeBTH))
			require.Nil(t, pkt.ErrorLayer())
			got, icrc := collect(pkt.Layers())
			samePacket(t, *want, got)
			require.Equal(t, layers.Good, icrc.Verdict)
			require.Equal(t, icrc.Want, icrc.Value)
			require.Len(t, icrc.Pad, int(want.Pad))
			if len(want.Payload) > 0 {
				require.Equal(t, want.Payload, pkt.ApplicationLayer().Payload())
			}

			buf := gopacket.NewSerializeBuffer()
			require.NoError(t, gopacket.SerializePacket(buf, gopacket.SerializeOptions{}, pkt))
			require.Equal(t, frame, buf.Bytes()[:len(frame)]) // gopacket pads to Ethernet's least length
		}
	})
	require.Greater(t, count, 800)
}

func TestDecodingLayerParser(t *testing.T) {
	var (
		eth     glayers.Ethernet
		ip4     glayers.IPv4
		ip6     glayers.IPv6
		udp     glayers.UDP
		payload gopacket.Payload
		d       = layers.NewDecoder(&ip4, &ip6, &udp)
	)
	parser := gopacket.NewDecodingLayerParser(glayers.LayerTypeEthernet, &eth, &ip4, &ip6, &udp, &payload)
	for _, l := range d.Layers() {
		parser.AddDecodingLayer(l)
	}
	byType := map[gopacket.LayerType]gopacket.Layer{gopacket.LayerTypePayload: &payload}
	for _, l := range d.Layers() {
		l := l.(gopacket.Layer)
		byType[l.LayerType()] = l
	}
	var types []gopacket.LayerType
	eachRoCE(t, func(frame []byte, want *roce.Packet) {
		require.NoError(t, parser.DecodeLayers(frame, &types))
		var decoded []gopacket.Layer
		for _, typ := range types {
			if l := byType[typ]; l != nil {
				decoded = append(decoded, l)
			}
		}
		got, icrc := collect(decoded)
		samePacket(t, *want, got)
		require.NotNil(t, icrc)
		require.Equal(t, layers.Good, icrc.Verdict)
		require.Zero(t, testing.AllocsPerRun(20, func() { _ = parser.DecodeLayers(frame, &types) }))
	})
}

// Without IP and UDP layers there is no verdict, and a wrong ICRC is found out.
func TestVerdicts(t *testing.T) {
	eachRoCE(t, func(frame []byte, want *roce.Packet) {
		var fr roce.Frame
		require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, frame, &fr))
		alone := gopacket.NewPacket(fr.Payload, layers.LayerTypeBTH, gopacket.Default)
		require.Nil(t, alone.ErrorLayer())
		got, icrc := collect(alone.Layers())
		samePacket(t, *want, got)
		require.Equal(t, layers.Unchecked, icrc.Verdict)

		bad := append([]byte(nil), frame...)
		bad[14+4] ^= 1 // IPv4 identification, or the length of IPv6
		if bad[14]>>4 == 4 {
			_, icrc = collect(gopacket.NewPacket(bad, glayers.LayerTypeEthernet, gopacket.Default).Layers())
			require.Equal(t, layers.Bad, icrc.Verdict)
			require.NotEqual(t, icrc.Want, icrc.Value)
		}
	})
	require.Equal(t, "good bad unchecked", layers.Good.String()+" "+layers.Bad.String()+" "+layers.Unchecked.String())
}

// Frames that a capture cut off still show their headers, and no ICRC.
func TestCutOff(t *testing.T) {
	eachRoCE(t, func(frame []byte, want *roce.Packet) {
		for _, n := range []int{len(frame) - 1, len(frame) - len(want.Payload)/2 - 4, 60, 54, 50, 45, 42} {
			if n < 42 || n >= len(frame) {
				continue
			}
			pkt := gopacket.NewPacket(frame[:n], glayers.LayerTypeEthernet, gopacket.Default)
			require.True(t, pkt.Metadata().Truncated)
			require.Nil(t, pkt.Layer(layers.LayerTypeICRC))
			udp, ok := pkt.TransportLayer().(*glayers.UDP)
			if !ok {
				continue // IPv6 cut before UDP
			}
			if len(udp.Payload) < want.HeaderLen() {
				if len(udp.Payload) > 0 {
					require.NotNil(t, pkt.ErrorLayer())
				}
				continue
			}
			got, _ := collect(pkt.Layers())
			require.Equal(t, want.RETH, got.RETH)
			require.Equal(t, want.PSN, got.PSN)
			require.Equal(t, min(len(want.Payload), len(udp.Payload)-want.HeaderLen()), len(got.Payload))
		}
	})
}

func TestMalformed(t *testing.T) {
	for _, payload := range [][]byte{{1}, make([]byte, 15), append([]byte{0xFF}, make([]byte, 40)...)} {
		pkt := gopacket.NewPacket(payload, layers.LayerTypeBTH, gopacket.Default)
		require.NotNil(t, pkt.ErrorLayer())
		var de *roce.DecodeError
		require.ErrorAs(t, pkt.ErrorLayer().Error(), &de)
	}
	var d layers.Decoder
	for _, l := range d.Layers() {
		require.Error(t, l.DecodeFromBytes(make([]byte, 3), gopacket.NilDecodeFeedback))
	}
	reth := new(layers.RETH)
	require.ErrorIs(t, reth.DecodeFromBytes(make([]byte, 15), gopacket.NilDecodeFeedback), layers.ErrTruncated)
}

// Each layer can be decoded by name, without a BTH before it.
func TestAlone(t *testing.T) {
	for name, n := range map[string]int{
		"DETH": 8, "XRCETH": 4, "FETH": 4, "RETH": 16, "AtomicETH": 28, "AETH": 4,
		"AtomicAckETH": 8, "ImmDt": 4, "IETH": 4, "CNP": 16,
	} {
		data := make([]byte, n+2)
		for i := range data {
			data[i] = byte(i + 1)
		}
		pkt := gopacket.NewPacket(data, gopacket.DecodersByLayerName[name], gopacket.Default)
		require.Nil(t, pkt.ErrorLayer(), name)
		require.Len(t, pkt.Layers(), 2)
		l := pkt.Layers()[0]
		require.Equal(t, name, l.LayerType().String())
		require.Equal(t, data[:n], l.LayerContents())
		require.Equal(t, data[n:], pkt.ApplicationLayer().Payload())
		buf := gopacket.NewSerializeBuffer()
		require.NoError(t, l.(gopacket.SerializableLayer).SerializeTo(buf, gopacket.SerializeOptions{}))
		want := append([]byte(nil), data[:n]...)
		require.Equal(t, want, buf.Bytes(), name)
		require.Len(t, gopacket.NewPacket(data[:n], l.LayerType(), gopacket.Default).Layers(), 1)
	}
}
