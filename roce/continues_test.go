package roce_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// What continues a packet decodes to the same but for PSN, AckReq and payload; no
// other bit of the BTH may differ.
func TestContinues(t *testing.T) {
	p := roce.Packet{Opcode: roce.OpWriteMiddle, PKey: roce.PKeyDefault, DestQP: 0x12, PSN: 0xFFFFFF, Mig: true, Resv7: 5}
	p.SetPayload(make([]byte, 256))
	prev := p.Append(nil)
	p.PSN, p.AckReq = 0, true
	next := p.Append(nil)
	next[100] = 1
	ackReq, ok := roce.Continues(prev, next)
	require.True(t, ok)
	require.True(t, ackReq)
	for bit := range roce.BTHLen * 8 {
		b := bytes.Clone(next)
		b[bit/8] ^= 1 << (bit % 8)
		ackReq, ok := roce.Continues(prev, b)
		asks := bit == 8*8+7
		require.Equal(t, asks, ok, "bit %d", bit)
		require.Equal(t, !asks, ackReq, "bit %d", bit)
	}
	for n := range len(next) {
		_, ok := roce.Continues(prev, next[:n])
		require.False(t, ok)
		_, ok = roce.Continues(next[:n], next[:n])
		require.False(t, ok)
	}
	_, ok = roce.Continues(prev, append(next, 0))
	require.False(t, ok)
}
