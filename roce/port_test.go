package roce_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

func TestSourcePort(t *testing.T) { // §1.4, §9.1 R29
	for _, c := range []struct {
		fl   uint32
		l, r roce.QPN
		want uint16
	}{
		{0x5BA59, 0, 0, 0xFA4F},
		{0x4D8C6, 5, 6, 0xD8D5},
		{0, 33, 34, 0xC462},
		{0x2546F, 1, 2, 0xD466},
		{0, 0x2C, 0x33, 0xC8C4},
		{0x1000000 | 0x5BA59, 0, 0, 0xFA4F}, // only 20 bits count
		{0, 0, 0, 0xC000},
	} {
		require.Equal(t, c.want, roce.SourcePort(c.fl, c.l, c.r), "%#x %d %d", c.fl, c.l, c.r)
		require.Equal(t, c.want, roce.SourcePort(c.fl, c.r, c.l), "both ends use the same")
	}
	for qpn, want := range map[roce.QPN]uint16{1: 0xD872, 0x4E: 0xF2C6, 0x50: 0xE3AA} {
		require.Equal(t, want, roce.DatagramPort(qpn))
	}
	require.Equal(t, uint32(0x5BA59), roce.CMFlowLabel(45050, 27411))
	require.Equal(t, uint32(0x4D8C6), roce.CMFlowLabel(43840, 7174))
}
