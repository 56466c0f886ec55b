package dump_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
)

const recordings = "../../testdata/pcaps"

func recordingFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(recordings + "/*.pcap")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordings, name))
	require.NoError(t, err)
	return b
}

// readAll returns all packets of a capture, their data copied, and the error
// that ended it.
func readAll(t testing.TB, b []byte) (all []dump.Packet, err error) {
	t.Helper()
	r, err := dump.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	for {
		var p dump.Packet
		if err := r.Next(&p); err != nil {
			return all, err
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
	}
}

// sealed returns an Ethernet frame with a SEND of some bytes over IPv4.
func sealed(payload []byte) []byte {
	p := roce.Packet{Opcode: roce.OpSendOnly, PKey: roce.PKeyDefault, DestQP: 0x11, PSN: 7}
	p.SetPayload(payload)
	h := roce.Headers{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		SrcPort: 0xC123, DstPort: roce.Port, Frag: roce.DontFragment,
	}
	b := append(make([]byte, 12), 0x08, 0x00)
	udp := roce.UDP{SrcPort: h.SrcPort, DstPort: roce.Port, Len: uint16(8 + p.Len())}
	ip := roce.IPv4{TotalLen: 20 + udp.Len, Frag: h.Frag, TTL: 64, Protocol: 17, Src: h.Src, Dst: h.Dst}
	b = udp.Append(ip.Append(b))
	at := len(b)
	b = p.Append(b)
	h.Seal(b[at:])
	return b
}

// pcapFile returns a capture with one packet of each frame, a second apart.
func pcapFile(order binary.AppendByteOrder, magic uint32, link uint32, frames ...[]byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(order.AppendUint32(b, 262144), link)
	for i, f := range frames {
		b = order.AppendUint32(order.AppendUint32(b, uint32(1000+i)), 123456)
		b = order.AppendUint32(order.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// ngBlock returns a pcapng block.
func ngBlock(order binary.AppendByteOrder, typ uint32, body []byte) []byte {
	body = append(body, make([]byte, -len(body)&3)...)
	n := uint32(len(body) + 12)
	b := order.AppendUint32(order.AppendUint32(nil, typ), n)
	return order.AppendUint32(append(b, body...), n)
}

func ngSection(order binary.AppendByteOrder) []byte {
	b := order.AppendUint32(nil, 0x1A2B3C4D)
	b = order.AppendUint16(order.AppendUint16(b, 1), 0)
	return ngBlock(order, 0x0A0D0D0A, order.AppendUint64(b, 0xFFFFFFFFFFFFFFFF))
}

// ngInterface returns an interface block with options, each code, length, value.
func ngInterface(order binary.AppendByteOrder, link uint16, snap uint32, options ...[]byte) []byte {
	b := order.AppendUint16(order.AppendUint16(nil, link), 0)
	b = order.AppendUint32(b, snap)
	for _, o := range options {
		b = append(b, o...)
		b = append(b, make([]byte, -len(o)&3)...)
	}
	return ngBlock(order, 1, b)
}

func ngOption(order binary.AppendByteOrder, code uint16, v ...byte) []byte {
	return append(order.AppendUint16(order.AppendUint16(nil, code), uint16(len(v))), v...)
}

func ngPacket(order binary.AppendByteOrder, iface uint32, ts uint64, frame []byte, wire int) []byte {
	b := order.AppendUint32(nil, iface)
	b = order.AppendUint32(order.AppendUint32(b, uint32(ts>>32)), uint32(ts))
	b = order.AppendUint32(order.AppendUint32(b, uint32(len(frame))), uint32(wire))
	return ngBlock(order, 6, append(b, frame...))
}
