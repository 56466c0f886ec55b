package roce_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/roce"
)

// Every opcode with every length around its headers, and every first flag byte:
// the decoder never panics, and what it takes it gives back (§9.1 R12, R13, R14).
func TestDecodeShortPackets(t *testing.T) {
	raw := make([]byte, roce.MaxHeaderLen+2*roce.ICRCLen+3)
	for i := range raw {
		raw[i] = byte(i*37 + 11)
	}
	known := knownRows()
	for op := range 256 {
		row, ok := known[roce.Opcode(op)]
		for n := range len(raw) + 1 {
			for pad := range 4 {
				b := append([]byte(nil), raw[:n]...)
				if n > 0 {
					b[0] = byte(op)
				}
				if n > 1 {
					b[1] = byte(0xC0 | pad<<4)
				}
				before := roce.Packet{Imm: 7}
				p := before
				err := p.Decode(b)
				need := roce.BTHLen + row.ext + roce.ICRCLen
				switch {
				case n < roce.BTHLen+roce.ICRCLen:
					require.ErrorIs(t, err, roce.ErrTruncated)
				case !ok:
					require.ErrorIs(t, err, roce.ErrOpcode)
				case n < need:
					require.ErrorIs(t, err, roce.ErrTruncated, "%#x %d", op, n)
				case n < need+pad:
					require.ErrorIs(t, err, roce.ErrLength, "%#x %d", op, n)
				default:
					require.NoError(t, err)
					require.Len(t, p.Payload, n-need-pad)
					require.Equal(t, n, p.Len())
					requireSame(t, b, &p)
					continue
				}
				require.Equal(t, before, p, "a failed Decode changed the packet")
				var de *roce.DecodeError
				require.ErrorAs(t, err, &de)
			}
		}
	}
}

// requireSame checks that p encodes to b, ICRC aside, into memory full of garbage.
func requireSame(t require.TestingT, b []byte, p *roce.Packet) {
	n := len(b) - roce.ICRCLen
	got := p.Append(garbage(len(b)))
	require.Equal(t, b[:n], got[:len(got)-roce.ICRCLen])
	require.Equal(t, make([]byte, roce.ICRCLen), got[n:])
	h := p.AppendHeader(garbage(roce.MaxHeaderLen))
	require.Equal(t, b[:p.HeaderLen()], h)
}

func TestDecodeVersion(t *testing.T) {
	b := make([]byte, 16)
	for v := 1; v < 16; v++ {
		b[1] = byte(v)
		require.ErrorIs(t, new(roce.Packet).Decode(b), roce.ErrVersion)
	}
}

func TestDecodeErrorTexts(t *testing.T) {
	for _, c := range []struct {
		b    string
		want string
	}{
		{"00", "roce: truncated: a packet has at least 16 bytes of transport header and ICRC"},
		{"ff000000 00000000 00000000 00000000", "roce: unknown opcode 0xff"},
		{"40000000 00000000 00000000 00000000", "roce: opcode 0x40 (RD SEND_FIRST): reliable datagram is obsolete and dropped"},
		{"04030000 00000000 00000000 00000000", "roce: transport header version is not 0"},
		{"04300000 00000000 00000000 00000000", "roce: RC SEND_ONLY: pad count leaves no room, 16 bytes are needed"},
		{"06000000 00000000 00000000 00000000", "roce: truncated: RC WRITE_FIRST has at least 32 bytes of headers and ICRC"},
	} {
		require.EqualError(t, new(roce.Packet).Decode(unhex(t, c.b)), c.want)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPacket(t)
		b := p.Append(garbage(p.Len()))
		require.Len(t, b, p.Len())
		var q roce.Packet
		require.NoError(t, q.Decode(b))
		if len(q.Payload) == 0 {
			q.Payload, p.Payload = nil, nil // empty or nil: the same
		}
		require.Equal(t, p, q)
		requireSame(t, b, &q)
	})
}

// Any bytes that decode come back as they were, pad bytes and reserved bits
// included, even where no sender would write them.
func TestAnyBytes(t *testing.T) {
	ops := rapid.SampledFrom([]byte{0x00, 0x05, 0x0B, 0x10, 0x12, 0x13, 0x17, 0x1C, 0x1D, 0x26, 0x65, 0x81, 0xAB, 0xB3, 0xB2})
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), roce.BTHLen+roce.ICRCLen, 80).Draw(t, "bytes")
		b[0] = ops.Draw(t, "opcode")
		b[1] &= 0xF0
		var p roce.Packet
		if err := p.Decode(b); err != nil {
			require.Truef(t, errors.Is(err, roce.ErrTruncated) || errors.Is(err, roce.ErrLength), "%v", err)
			return
		}
		requireSame(t, b, &p)
	})
}

// The payload is the decoded bytes themselves, and appending to it cannot reach
// the pad and the ICRC behind it.
func TestPayloadAliases(t *testing.T) {
	b := unhex(t, "0470ffff 00000011 80000001 68656c6c6f 000000 9b3a0f82")
	var p roce.Packet
	require.NoError(t, p.Decode(b))
	require.Equal(t, "hello", string(p.Payload))
	b[12] = 'j'
	require.Equal(t, "jello", string(p.Payload))
	_ = append(p.Payload, 0xFF)
	require.Zero(t, b[17])
}

func TestSetPayload(t *testing.T) { // §9.1 R1
	for n := range 10 {
		p := roce.Packet{Opcode: roce.OpSendOnly}
		p.SetPayload(bytes.Repeat([]byte{0xFF}, n))
		b := p.Append(garbage(64))
		require.Zero(t, len(b)%4)
		require.Equal(t, roce.BTHLen+(n+3)/4*4+roce.ICRCLen, len(b))
		for _, v := range b[roce.BTHLen+n:] {
			require.Zero(t, v, "pad bytes are zeros")
		}
		require.NoError(t, p.CheckLength(256))
	}
	// Pad bytes of a decoded packet do not outlive its payload.
	var p roce.Packet
	require.NoError(t, p.Decode(unhex(t, "04300000 00000000 00000000 01 aabbcc 00000000")))
	p.SetPayload([]byte{1, 2, 3})
	require.Equal(t, []byte{1, 2, 3, 0, 0, 0, 0, 0}, p.Append(nil)[roce.BTHLen:])
}

func TestCheckLength(t *testing.T) { // §1.9, §9.1 R11
	const mtu = 256
	lengths := []int{0, 1, 4, 7, 8, 9, 252, 255, 256, 257, 260, 1024}
	allowed := map[roce.PayloadRule]func(n int) bool{
		roce.PayloadNone:  func(n int) bool { return n == 0 },
		roce.PayloadFull:  func(n int) bool { return n == mtu },
		roce.PayloadSome:  func(n int) bool { return n >= 1 && n <= mtu },
		roce.PayloadAny:   func(n int) bool { return n <= mtu },
		roce.PayloadEight: func(n int) bool { return n == 8 },
	}
	for op := range knownRows() {
		for _, n := range lengths {
			p := roce.Packet{Opcode: op}
			p.SetPayload(make([]byte, n))
			err := p.CheckLength(mtu)
			if allowed[op.Payload()](n) {
				require.NoError(t, err, "%v %d", op, n)
			} else {
				require.ErrorIs(t, err, roce.ErrLength, "%v %d", op, n)
			}
			p.Pad = (p.Pad + 1) & 3
			require.ErrorIs(t, p.CheckLength(mtu), roce.ErrLength, "wrong pad")
		}
	}
	p := roce.Packet{Opcode: roce.OpWriteFirst, Payload: make([]byte, 252)}
	require.EqualError(t, p.CheckLength(256), "roce: RC WRITE_FIRST with 252 bytes of payload and pad 0: "+
		"the opcode takes exactly 256 bytes, padded to a multiple of 4")
	for op, want := range map[roce.Opcode]string{
		roce.OpSendLast: "1 to 256 bytes", roce.OpSendOnly: "0 to 256 bytes", roce.OpAtomicWrite: "exactly 8 bytes", roce.OpAcknowledge: "no payload",
	} {
		p := roce.Packet{Opcode: op, Payload: make([]byte, 300)}
		require.ErrorContains(t, p.CheckLength(256), want)
	}
}

func TestMakeCNP(t *testing.T) { // §1.11, §2.4
	p := roce.MakeCNP(0x118)
	b := p.Append(nil)
	require.Equal(t, unhex(t, "8100ffff 40000118 00000000 00000000000000000000000000000000 00000000"), b)
}

func TestString(t *testing.T) {
	p := roce.Packet{Opcode: roce.OpWriteOnlyImm, DestQP: 0x21, PSN: 0x1000, AckReq: true, SE: true, PKey: roce.PKeyDefault, Imm: 0xCAFE0001}
	p.RETH = roce.RETH{VA: 0x7F00, RKey: 0x12E5, Len: 13}
	p.SetPayload(make([]byte, 13))
	require.Equal(t, "RC WRITE_ONLY_IMM qp 0x21 psn 0x001000 ackreq se pad 3 RETH va 0x7f00 rkey 0x12e5 len 13 imm 0xcafe0001 payload 13", p.String())
	for want, p := range map[string]roce.Packet{
		"XRC SEND_LAST_INV qp 0x1 psn 0xfffffe fecn becn pkey 0x1 XRCETH srq 0x9 IETH rkey 0x5": {
			Opcode: roce.OpXRCSendLastInv, DestQP: 1, PSN: 0xFFFFFE, FECN: true, BECN: true, PKey: 1, SRQN: 9, InvKey: 5,
		},
		"RC FLUSH qp 0x0 psn 0x000000 FETH type 3 select 1 RETH va 0x0 rkey 0x0 len 0": {
			Opcode: roce.OpFlush, PKey: 0xFFFF, FETH: roce.FETH{Type: 3, Select: 1},
		},
	} {
		require.Equal(t, want, p.String())
	}
}

func ExamplePacket() {
	p := roce.Packet{Opcode: roce.OpWriteOnly, Mig: true, PKey: roce.PKeyDefault, DestQP: 0x21, PSN: 0x1000, AckReq: true}
	p.RETH = roce.RETH{VA: 0x7F0000001000, RKey: 0x12E5, Len: 5}
	p.SetPayload([]byte("hello"))
	wire := p.Append(nil) // still without its ICRC: see Headers.Seal

	var q roce.Packet
	if err := q.Decode(wire); err != nil {
		fmt.Println(err)
	}
	fmt.Println(&q)
	fmt.Printf("%s\n", q.Payload)
	// Output:
	// RC WRITE_ONLY qp 0x21 psn 0x001000 ackreq pad 3 RETH va 0x7f0000001000 rkey 0x12e5 len 5 payload 5
	// hello
}
