package hixl_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

var (
	addr4 = hixl.Address{Addr: netip.MustParseAddr("10.1.2.3"), QPN: 0xa1b2, PSN: 0xc3d4e5, MTU: 4096, MaxReads: 16, Hixl: true}
	addr6 = hixl.Address{Addr: netip.MustParseAddr("fd00::1"), QPN: 0xfffffe, PSN: 0, MTU: 256, MaxReads: 0}
)

func TestAddressText(t *testing.T) {
	require.Equal(t, "hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16,hixl", addr4.String())
	require.Equal(t, "hixl1,fd00::1,qpn=0xfffffe,psn=0x000000,mtu=256,reads=0", addr6.String())
	for _, a := range []hixl.Address{addr4, addr6} {
		got, err := hixl.ParseAddress(a.String())
		require.NoError(t, err)
		require.Equal(t, a, got)
		b, err := a.MarshalBinary()
		require.NoError(t, err)
		var back hixl.Address
		require.NoError(t, back.UnmarshalBinary(b))
		require.Equal(t, a, back)
	}
	j, err := json.Marshal(map[string]hixl.Address{"peer": addr4})
	require.NoError(t, err)
	require.JSONEq(t, `{"peer":"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16,hixl"}`, string(j))
	var back map[string]hixl.Address
	require.NoError(t, json.Unmarshal(j, &back))
	require.Equal(t, addr4, back["peer"])
}

// There is one way to write an address; everything else is refused, with what is
// wrong and how it should look.
func TestParseAddressErrors(t *testing.T) {
	for in, says := range map[string]string{
		"": `begin with "hixl1"`,
		"hixl2,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                  `begin with "hixl1"`,
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096":                           "5 fields",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16,rxe":              "7 fields",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16,hixl,":            "8 fields",
		"hixl1,10.1.2.300,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                "no IP address",
		"hixl1,0.0.0.0,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                   "one host",
		"hixl1,224.0.0.1,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                 "one host",
		"hixl1,255.255.255.255,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":           "one host",
		"hixl1,fe80::1%lo,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                "zone",
		"hixl1,::ffff:10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":           "IPv4-mapped",
		"hixl1,10.1.2.3,psn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                  `begin with "qpn=0x"`,
		"hixl1,10.1.2.3,qpn=0x1000000,psn=0xc3d4e5,mtu=4096,reads=16":                 "below 2^24",
		"hixl1,10.1.2.3,qpn=0x000000,psn=0xc3d4e5,mtu=4096,reads=16":                  "0x000001",
		"hixl1,10.1.2.3,qpn=0xffffff,psn=0xc3d4e5,mtu=4096,reads=16":                  "0xfffffe",
		"hixl1,10.1.2.3,qpn=0xa1b2,psn=0xc3d4e5,mtu=4096,reads=16":                    "one way to write it",
		"hixl1,10.1.2.3,qpn=0x00A1B2,psn=0xc3d4e5,mtu=4096,reads=16":                  "one way to write it",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=1500,reads=16":                  "mtu must be",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=129":                 "reads must be",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=-1":                  "no number",
		"hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16\n":                "no number",
		" hixl1,10.1.2.3,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16":                 "begin with",
		"hixl1,2001:db8:0:0:0:0:0:1,qpn=0x00a1b2,psn=0xc3d4e5,mtu=4096,reads=16,hixl": "one way to write it",
	} {
		_, err := hixl.ParseAddress(in)
		require.ErrorIs(t, err, hixl.ErrAddress, "%q", in)
		require.ErrorContains(t, err, says, "%q", in)
		require.ErrorContains(t, err, "hixl1,10.0.0.1,", "it shows how")
	}
}

func TestBinaryAddressErrors(t *testing.T) {
	good, err := addr4.MarshalBinary()
	require.NoError(t, err)
	require.Len(t, good, 14)
	for n := range good {
		require.ErrorIs(t, new(hixl.Address).UnmarshalBinary(good[:n]), hixl.ErrAddress)
	}
	for i, v := range map[int]byte{0: 2, 1: 2, 2: 0, 3: 129, 10: 224} {
		b := append([]byte(nil), good...)
		b[i] = v
		var a hixl.Address
		require.ErrorIs(t, a.UnmarshalBinary(b), hixl.ErrAddress, "byte %d", i)
		require.Zero(t, a)
	}
	for _, a := range []hixl.Address{{}, {Addr: addr4.Addr}, {Addr: addr4.Addr, QPN: 5, MTU: 4096, PSN: 1 << 24}} {
		_, err := a.MarshalBinary()
		require.ErrorIs(t, err, hixl.ErrAddress)
		_, err = a.MarshalText()
		require.ErrorIs(t, err, hixl.ErrAddress)
	}
}

func FuzzAddress(f *testing.F) {
	for _, a := range []hixl.Address{addr4, addr6} {
		b, _ := a.MarshalBinary()
		f.Add([]byte(a.String()))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := hixl.ParseAddress(string(b)); err == nil {
			require.Equal(t, string(b), a.String())
		}
		var a hixl.Address
		if a.UnmarshalBinary(b) == nil {
			back, err := a.MarshalBinary()
			require.NoError(t, err)
			require.Equal(t, b, back)
		}
	})
}
