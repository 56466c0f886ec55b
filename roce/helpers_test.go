package roce_test

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
)

const captures = "../testdata/pcaps"

// unhex decodes hexadecimal digits, spaces between them allowed.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

// frames calls f for each frame of a capture; the bytes are f's to keep.
func frames(t testing.TB, file string, f func(n int, link roce.LinkType, frame []byte)) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	r, err := dump.NewReader(in)
	require.NoError(t, err)
	var p dump.Packet
	for n := 1; ; n++ {
		err := r.Next(&p)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		f(n, p.Link, append([]byte(nil), p.Data...))
	}
}

func captureFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(captures + "/*.pcap")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// anyPacket draws a packet of a known opcode in which every field, reserved bits
// included, may have any value, and which has only the headers of its opcode.
func anyPacket(t *rapid.T) roce.Packet {
	var known []roce.Opcode
	for i := range 256 {
		if roce.Opcode(i).Known() {
			known = append(known, roce.Opcode(i))
		}
	}
	u8, u32, u64 := rapid.Uint8(), rapid.Uint32(), rapid.Uint64()
	u24 := rapid.Uint32Range(0, 1<<24-1)
	p := roce.Packet{
		Opcode: rapid.SampledFrom(known).Draw(t, "opcode"),
		SE:     rapid.Bool().Draw(t, "se"), Mig: rapid.Bool().Draw(t, "mig"), AckReq: rapid.Bool().Draw(t, "ackreq"),
		FECN: rapid.Bool().Draw(t, "fecn"), BECN: rapid.Bool().Draw(t, "becn"),
		PKey:  rapid.Uint16().Draw(t, "pkey"),
		Resv6: u8.Draw(t, "resv6") & 0x3F, Resv7: u8.Draw(t, "resv7") & 0x7F,
		DestQP: roce.QPN(u24.Draw(t, "qp")), PSN: roce.PSN(u24.Draw(t, "psn")),
	}
	p.SetPayload(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload"))
	has := p.Opcode.Has
	if has(roce.HasDETH) {
		p.DETH = roce.DETH{QKey: u32.Draw(t, "qkey"), SrcQP: roce.QPN(u24.Draw(t, "srcqp")), Resv: u8.Draw(t, "deth")}
	}
	if has(roce.HasXRCETH) {
		p.SRQN, p.SRQNResv = u24.Draw(t, "srqn"), u8.Draw(t, "xrceth")
	}
	if has(roce.HasFETH) {
		p.FETH = roce.FETH{Type: u8.Draw(t, "type") & 15, Select: u8.Draw(t, "select") & 3, Resv: u32.Draw(t, "feth") >> 6}
	}
	if has(roce.HasRETH) {
		p.RETH = roce.RETH{VA: u64.Draw(t, "va"), RKey: u32.Draw(t, "rkey"), Len: u32.Draw(t, "len")}
	}
	if has(roce.HasAtomicETH) {
		p.Atomic = roce.AtomicETH{
			VA: u64.Draw(t, "va"), RKey: u32.Draw(t, "rkey"),
			SwapAdd: u64.Draw(t, "swap"), Compare: u64.Draw(t, "compare"),
		}
	}
	if has(roce.HasAETH) {
		p.AETH = roce.AETH{Syndrome: roce.Syndrome(u8.Draw(t, "syndrome")), MSN: u24.Draw(t, "msn")}
	}
	if has(roce.HasAtomicAck) {
		p.AtomicAck = u64.Draw(t, "orig")
	}
	if has(roce.HasImm) {
		p.Imm = u32.Draw(t, "imm")
	}
	if has(roce.HasIETH) {
		p.InvKey = u32.Draw(t, "invkey")
	}
	if has(roce.HasCNP) {
		copy(p.CNPResv[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "cnp"))
	}
	return p
}

// garbage returns an empty slice with room for n bytes of 0xA5.
func garbage(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xA5
	}
	return b[:0]
}
