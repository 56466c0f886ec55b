package roce_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

func TestSyndromeKinds(t *testing.T) { // §1.8
	for s := range 256 {
		want := roce.AckReserved
		switch {
		case s < 0x20:
			want = roce.AckACK
		case s < 0x40:
			want = roce.AckRNR
		case s >= 0x60 && s < 0x80:
			want = roce.AckNAK
		}
		got := roce.Syndrome(s)
		require.Equal(t, want, got.Kind(), "%#x", s)
		require.Equal(t, uint8(s&31), got.Value())
		require.Equal(t, want == roce.AckRNR, got.RNRDelay() != 0)
	}
	require.Equal(t, roce.Syndrome(0x34), roce.RNR(20))
	require.Equal(t, roce.Syndrome(0x3F), roce.RNR(0xFF))
	require.Equal(t, roce.SynACK, roce.ACK(31))
	require.Equal(t, roce.AckRNR, roce.RNR(0).Kind())
}

func TestCredits(t *testing.T) { // §1.8
	want := []int{
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	}
	for code, n := range want {
		got, limited := roce.ACK(uint8(code)).Credits()
		require.True(t, limited)
		require.Equal(t, n, got, "code %d", code)
		require.Equal(t, uint8(code), roce.CreditCode(n))
		require.Equal(t, uint8(max(code-1, 0)), roce.CreditCode(n-1))
	}
	require.Equal(t, uint8(30), roce.CreditCode(1<<30))
	require.Equal(t, uint8(4), roce.CreditCode(5))
	for _, s := range []roce.Syndrome{roce.SynACK, roce.RNR(3), roce.SynNakSeq, 0x80} {
		_, limited := s.Credits()
		require.False(t, limited, "%#x", s)
	}
}

func TestRNRTimer(t *testing.T) { // §1.8, in microseconds
	want := []int{
		655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
		2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	}
	for code, us := range want {
		require.Equal(t, time.Duration(us)*time.Microsecond, roce.RNRTimer(uint8(code)), "code %d", code)
		require.Equal(t, roce.RNRTimer(uint8(code)), roce.RNR(uint8(code)).RNRDelay())
	}
}

func TestSyndromeString(t *testing.T) {
	for s, want := range map[roce.Syndrome]string{
		roce.SynACK:        "ACK credits 31",
		0:                  "ACK credits 0",
		roce.RNR(20):       "RNR 10.24ms",
		roce.SynNakSeq:     "NAK PSN sequence error",
		roce.SynNakInvalid: "NAK invalid request",
		roce.SynNakAccess:  "NAK remote access error",
		roce.SynNakOp:      "NAK remote operational error",
		roce.SynNakRD:      "NAK invalid RD request",
		0x65:               "NAK reserved code 5",
		0x40:               "reserved",
		0xFF:               "reserved",
	} {
		require.Equal(t, want, s.String())
	}
	require.Equal(t, "ACK RNR NAK reserved", roce.AckACK.String()+" "+roce.AckRNR.String()+" "+roce.AckNAK.String()+" "+roce.AckReserved.String())
}
