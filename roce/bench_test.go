package roce_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gohixl/hixl/roce"
)

// benchPackets are the shapes that matter: what carries data, and what answers.
func benchPackets() map[string][]byte {
	shape := func(op roce.Opcode, payload int) []byte {
		p := roce.Packet{Opcode: op, PKey: roce.PKeyDefault, DestQP: 0x11, PSN: 0x123456}
		p.SetPayload(make([]byte, payload))
		b := p.Append(nil)
		helloHeaders.Seal(b)
		return b
	}
	return map[string][]byte{
		"ack":         shape(roce.OpAcknowledge, 0),
		"middle-1024": shape(roce.OpWriteMiddle, 1024),
		"middle-4096": shape(roce.OpWriteMiddle, 4096),
		"only-64":     shape(roce.OpWriteOnly, 64),
		"atomic":      shape(roce.OpFetchAdd, 0),
	}
}

func benchShapes(b *testing.B, run func(b *testing.B, pkt []byte)) {
	for name, pkt := range benchPackets() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(pkt)))
			run(b, pkt)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkt []byte) {
		var p roce.Packet
		for b.Loop() {
			if err := p.Decode(pkt); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkt []byte) {
		var p roce.Packet
		if err := p.Decode(pkt); err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 0, roce.MaxHeaderLen)
		for b.Loop() {
			p.AppendHeader(buf)
		}
	})
}

func BenchmarkICRC(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkt []byte) {
		h := helloHeaders
		for b.Loop() {
			if !h.Check(pkt) {
				b.Fatal("wrong ICRC")
			}
		}
	})
}

func BenchmarkCheckAnyID(b *testing.B) {
	for _, guess := range []uint16{0, 9} {
		b.Run(fmt.Sprintf("guess-%d", guess), func(b *testing.B) {
			benchShapes(b, func(b *testing.B, pkt []byte) {
				h := helloHeaders
				h.ID = guess
				for b.Loop() {
					if _, ok := h.CheckAnyID(pkt, 127); !ok {
						b.Fatal("wrong ICRC")
					}
				}
			})
		})
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	frame := ethernet(unhex(b, vectors["§2.2 IPv4"]))
	var f roce.Frame
	b.ReportAllocs()
	for b.Loop() {
		if err := roce.DecodeFrame(roce.LinkEthernet, frame, &f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBegin is the sum of a header, of one packet after the other of a train.
func BenchmarkBegin(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkt []byte) {
		h := helloHeaders
		var p roce.Packet
		if err := p.Decode(pkt); err != nil {
			b.Fatal(err)
		}
		headers := pkt[:p.HeaderLen()]
		for name, begin := range map[string]func(t *roce.Template, id uint16) roce.Sum{
			"full": func(_ *roce.Template, id uint16) roce.Sum {
				h.ID = id
				return h.Begin(headers, len(pkt))
			},
			"like": func(t *roce.Template, id uint16) roce.Sum { return t.Begin(&h, id, headers, len(pkt)) },
		} {
			b.Run(name, func(b *testing.B) {
				var t roce.Template
				b.ReportAllocs()
				for i := uint32(0); b.Loop(); i++ {
					binary.BigEndian.PutUint32(headers[8:], i)
					begin(&t, uint16(i&63))
				}
			})
		}
	})
}
