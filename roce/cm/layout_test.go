package cm_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// field says where a field lies, in bytes and bits after the MAD header with bit 0
// the most significant (§5.4), and sets all of its bits.
type field struct {
	byte, bit, width int
	set              cm.Message
}

const (
	all24 = 1<<24 - 1
	all32 = 1<<32 - 1
	all64 = 1<<64 - 1
)

var ones = func() (g cm.GID) {
	for i := range g {
		g[i] = 0xFF
	}
	return g
}()

func primary(p cm.Path) cm.Message   { return &cm.REQ{Primary: p} }
func alternate(p cm.Path) cm.Message { return &cm.REQ{Alternate: p} }
func lap(p cm.Path) cm.Message       { return &cm.LAP{Path: p} }

var layout = []field{
	{0, 0, 32, &cm.REQ{LocalID: all32}},
	{5, 0, 24, &cm.REQ{VendorID: all24}},
	{8, 0, 64, &cm.REQ{Service: all64}},
	{16, 0, 64, &cm.REQ{CAGUID: all64}},
	{28, 0, 32, &cm.REQ{QKey: all32}},
	{32, 0, 24, &cm.REQ{QPN: all24}},
	{35, 0, 8, &cm.REQ{ResponderResources: 255}},
	{36, 0, 24, &cm.REQ{LocalEECN: all24}},
	{39, 0, 8, &cm.REQ{InitiatorDepth: 255}},
	{40, 0, 24, &cm.REQ{RemoteEECN: all24}},
	{43, 0, 5, &cm.REQ{RemoteTimeout: 31}},
	{43, 5, 2, &cm.REQ{Transport: cm.Extended}},
	{43, 7, 1, &cm.REQ{FlowControl: true}},
	{44, 0, 24, &cm.REQ{StartPSN: all24}},
	{47, 0, 5, &cm.REQ{LocalTimeout: 31}},
	{47, 5, 3, &cm.REQ{RetryCount: 7}},
	{48, 0, 16, &cm.REQ{PKey: 0xFFFF}},
	{50, 0, 4, &cm.REQ{MTU: 15}},
	{50, 4, 1, &cm.REQ{RDC: true}},
	{50, 5, 3, &cm.REQ{RNRRetry: 7}},
	{51, 0, 4, &cm.REQ{MaxCMRetries: 15}},
	{51, 4, 1, &cm.REQ{SRQ: true}},
	{51, 5, 3, &cm.REQ{ExtendedTransport: 7}},
	{52, 0, 16, primary(cm.Path{LocalLID: 0xFFFF})},
	{54, 0, 16, primary(cm.Path{RemoteLID: 0xFFFF})},
	{56, 0, 128, primary(cm.Path{LocalGID: ones})},
	{72, 0, 128, primary(cm.Path{RemoteGID: ones})},
	{88, 0, 20, primary(cm.Path{FlowLabel: 0xFFFFF})},
	{91, 2, 6, primary(cm.Path{Rate: 63})},
	{92, 0, 8, primary(cm.Path{TrafficClass: 255})},
	{93, 0, 8, primary(cm.Path{HopLimit: 255})},
	{94, 0, 4, primary(cm.Path{SL: 15})},
	{94, 4, 1, primary(cm.Path{SubnetLocal: true})},
	{95, 0, 5, primary(cm.Path{ACKTimeout: 31})},
	{96, 0, 16, alternate(cm.Path{LocalLID: 0xFFFF})},
	{98, 0, 16, alternate(cm.Path{RemoteLID: 0xFFFF})},
	{100, 0, 128, alternate(cm.Path{LocalGID: ones})},
	{116, 0, 128, alternate(cm.Path{RemoteGID: ones})},
	{132, 0, 20, alternate(cm.Path{FlowLabel: 0xFFFFF})},
	{135, 2, 6, alternate(cm.Path{Rate: 63})},
	{136, 0, 8, alternate(cm.Path{TrafficClass: 255})},
	{137, 0, 8, alternate(cm.Path{HopLimit: 255})},
	{138, 0, 4, alternate(cm.Path{SL: 15})},
	{138, 4, 1, alternate(cm.Path{SubnetLocal: true})},
	{139, 0, 5, alternate(cm.Path{ACKTimeout: 31})},
	{140, 0, 92 * 8, &cm.REQ{Private: [92]byte(fill(92))}},

	{0, 0, 32, &cm.MRA{LocalID: all32}},
	{4, 0, 32, &cm.MRA{RemoteID: all32}},
	{8, 0, 2, &cm.MRA{Answered: 3}},
	{9, 0, 5, &cm.MRA{ServiceTimeout: 31}},
	{10, 0, 222 * 8, &cm.MRA{Private: [222]byte(fill(222))}},

	{0, 0, 32, &cm.REJ{LocalID: all32}},
	{4, 0, 32, &cm.REJ{RemoteID: all32}},
	{8, 0, 2, &cm.REJ{Rejected: 3}},
	{9, 0, 7, &cm.REJ{InfoLen: 127}},
	{10, 0, 16, &cm.REJ{Reason: 0xFFFF}},
	{12, 0, 72 * 8, &cm.REJ{ARI: [72]byte(fill(72))}},
	{84, 0, 148 * 8, &cm.REJ{Private: [148]byte(fill(148))}},

	{0, 0, 32, &cm.REP{LocalID: all32}},
	{4, 0, 32, &cm.REP{RemoteID: all32}},
	{8, 0, 32, &cm.REP{QKey: all32}},
	{12, 0, 24, &cm.REP{QPN: all24}},
	{15, 0, 8, &cm.REP{VendorID: 0xFF0000}},
	{16, 0, 24, &cm.REP{EECN: all24}},
	{19, 0, 8, &cm.REP{VendorID: 0x00FF00}},
	{20, 0, 24, &cm.REP{StartPSN: all24}},
	{23, 0, 8, &cm.REP{VendorID: 0x0000FF}},
	{24, 0, 8, &cm.REP{ResponderResources: 255}},
	{25, 0, 8, &cm.REP{InitiatorDepth: 255}},
	{26, 0, 5, &cm.REP{TargetACKDelay: 31}},
	{26, 5, 2, &cm.REP{Failover: 3}},
	{26, 7, 1, &cm.REP{FlowControl: true}},
	{27, 0, 3, &cm.REP{RNRRetry: 7}},
	{27, 3, 1, &cm.REP{SRQ: true}},
	{28, 0, 64, &cm.REP{CAGUID: all64}},
	{36, 0, 196 * 8, &cm.REP{Private: [196]byte(fill(196))}},

	{0, 0, 32, &cm.RTU{LocalID: all32}},
	{4, 0, 32, &cm.RTU{RemoteID: all32}},
	{8, 0, 224 * 8, &cm.RTU{Private: [224]byte(fill(224))}},

	{0, 0, 32, &cm.DREQ{LocalID: all32}},
	{4, 0, 32, &cm.DREQ{RemoteID: all32}},
	{8, 0, 24, &cm.DREQ{QPN: all24}},
	{12, 0, 220 * 8, &cm.DREQ{Private: [220]byte(fill(220))}},

	{0, 0, 32, &cm.DREP{LocalID: all32}},
	{4, 0, 32, &cm.DREP{RemoteID: all32}},
	{8, 0, 224 * 8, &cm.DREP{Private: [224]byte(fill(224))}},

	{0, 0, 32, &cm.SIDRREQ{RequestID: all32}},
	{4, 0, 16, &cm.SIDRREQ{PKey: 0xFFFF}},
	{8, 0, 64, &cm.SIDRREQ{Service: all64}},
	{16, 0, 216 * 8, &cm.SIDRREQ{Private: [216]byte(fill(216))}},

	{0, 0, 32, &cm.SIDRREP{RequestID: all32}},
	{4, 0, 8, &cm.SIDRREP{Status: 255}},
	{5, 0, 8, &cm.SIDRREP{InfoLen: 255}},
	{6, 0, 16, &cm.SIDRREP{VendorID: 0xFFFF00}},
	{8, 0, 24, &cm.SIDRREP{QPN: all24}},
	{11, 0, 8, &cm.SIDRREP{VendorID: 0x0000FF}},
	{12, 0, 64, &cm.SIDRREP{Service: all64}},
	{20, 0, 32, &cm.SIDRREP{QKey: all32}},
	{24, 0, 72 * 8, &cm.SIDRREP{Info: [72]byte(fill(72))}},
	{96, 0, 136 * 8, &cm.SIDRREP{Private: [136]byte(fill(136))}},

	{0, 0, 32, &cm.LAP{LocalID: all32}},
	{4, 0, 32, &cm.LAP{RemoteID: all32}},
	{12, 0, 24, &cm.LAP{QPN: all24}},
	{15, 0, 5, &cm.LAP{RemoteTimeout: 31}},
	{20, 0, 16, lap(cm.Path{LocalLID: 0xFFFF})},
	{22, 0, 16, lap(cm.Path{RemoteLID: 0xFFFF})},
	{24, 0, 128, lap(cm.Path{LocalGID: ones})},
	{40, 0, 128, lap(cm.Path{RemoteGID: ones})},
	{56, 0, 20, lap(cm.Path{FlowLabel: 0xFFFFF})},
	{59, 0, 8, lap(cm.Path{TrafficClass: 255})},
	{60, 0, 8, lap(cm.Path{HopLimit: 255})},
	{61, 2, 6, lap(cm.Path{Rate: 63})},
	{62, 0, 4, lap(cm.Path{SL: 15})},
	{62, 4, 1, lap(cm.Path{SubnetLocal: true})},
	{63, 0, 5, lap(cm.Path{ACKTimeout: 31})},
	{64, 0, 168 * 8, &cm.LAP{Private: [168]byte(fill(168))}},

	{0, 0, 32, &cm.APR{LocalID: all32}},
	{4, 0, 32, &cm.APR{RemoteID: all32}},
	{8, 0, 8, &cm.APR{InfoLen: 255}},
	{9, 0, 8, &cm.APR{Status: 255}},
	{12, 0, 72 * 8, &cm.APR{Info: [72]byte(fill(72))}},
	{84, 0, 148 * 8, &cm.APR{Private: [148]byte(fill(148))}},
}

func fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xFF
	}
	return b
}

// Each field lies where the table of §5.4 says, and nowhere else.
func TestLayout(t *testing.T) {
	for i, f := range layout {
		t.Run(fmt.Sprintf("%v@%d.%d", f.set.Attribute(), f.byte, f.bit), func(t *testing.T) {
			b := f.set.Append(nil)
			require.Len(t, b, cm.MADLen)
			require.Equal(t, []byte{1, 7, 2, 3, 0, 0, 0, 0}, b[:8], "header (§5.3)")
			body := new(big.Int).SetBytes(b[24:])
			want := new(big.Int).Lsh(big.NewInt(1), uint(f.width))
			want.Sub(want, big.NewInt(1))
			want.Lsh(want, uint((cm.MADLen-24)*8-f.byte*8-f.bit-f.width))
			require.Zero(t, want.Cmp(body), "row %d: bits\n%x\nwant\n%x", i, body, want)
			again, err := cm.Decode(b)
			require.NoError(t, err)
			require.Equal(t, f.set, again)
		})
	}
}

// All fields together cover no bit twice, and decoding a message of ones gives
// them all; so what is not in the table is reserved.
func TestLayoutIsWhole(t *testing.T) {
	covered := map[cm.Attribute]*big.Int{}
	for _, f := range layout {
		attr := f.set.Attribute()
		if covered[attr] == nil {
			covered[attr] = new(big.Int)
		}
		bits := new(big.Int).SetBytes(f.set.Append(nil)[24:])
		require.Zero(t, new(big.Int).And(covered[attr], bits).Sign(), "%v@%d overlaps", attr, f.byte)
		covered[attr].Or(covered[attr], bits)
	}
	require.Len(t, covered, 11)
	for attr, want := range covered {
		b := cm.NewMessage(attr).Append(nil)
		for i := 24; i < len(b); i++ {
			b[i] = 0xFF
		}
		m, err := cm.Decode(b)
		require.NoError(t, err)
		require.Zero(t, want.Cmp(new(big.Int).SetBytes(m.Append(nil)[24:])), "%v", attr)
	}
}

func TestHeader(t *testing.T) {
	m := &cm.RTU{Header: cm.Header{Status: 0x1234, ClassSpecific: 0x5678, TID: 0x1122334455667788, Modifier: 0x99aabbcc}}
	b := m.Append(nil)
	require.Equal(t, []byte{
		1, 7, 2, 3, 0x12, 0x34, 0x56, 0x78,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0x14, 0, 0, 0x99, 0xaa, 0xbb, 0xcc,
	}, b[:24])
	var again cm.RTU
	require.NoError(t, again.Decode(b))
	require.Equal(t, *m, again)
}

// §5.3: what is dropped silently.
func TestDecodeErrors(t *testing.T) {
	good := (&cm.REQ{}).Append(nil)
	for name, c := range map[string]struct {
		change func([]byte) []byte
		reason error
	}{
		"empty":        {func([]byte) []byte { return nil }, cm.ErrLength},
		"255 bytes":    {func(b []byte) []byte { return b[:255] }, cm.ErrLength},
		"257 bytes":    {func(b []byte) []byte { return append(b, 0) }, cm.ErrLength},
		"base version": {func(b []byte) []byte { b[0] = 2; return b }, cm.ErrVersion},
		"class":        {func(b []byte) []byte { b[1] = 4; return b }, cm.ErrClass},
		"version":      {func(b []byte) []byte { b[2] = 1; return b }, cm.ErrVersion},
		"method":       {func(b []byte) []byte { b[3] = 0x81; return b }, cm.ErrMethod},
		"attribute":    {func(b []byte) []byte { b[17] = 0x0F; return b }, cm.ErrAttribute},
		"attribute+":   {func(b []byte) []byte { b[17] = 0x1B; return b }, cm.ErrAttribute},
		"other":        {func(b []byte) []byte { b[17] = 0x13; return b }, cm.ErrAttribute},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.change(append([]byte(nil), good...))
			var m cm.REQ
			err := m.Decode(b)
			require.ErrorIs(t, err, c.reason)
			var de *cm.DecodeError
			require.ErrorAs(t, err, &de)
			require.NotEmpty(t, de.Error())
			if name != "other" {
				_, err = cm.Decode(b)
				require.ErrorIs(t, err, c.reason)
			}
		})
	}
	require.Nil(t, cm.NewMessage(0x0F))
}

func TestNames(t *testing.T) {
	require.Equal(t, "SIDR_REP", cm.AttrSIDRREP.String())
	require.Equal(t, "Attribute(0x001b)", cm.Attribute(0x1B).String())
	require.Equal(t, "00ab0001", cm.CommID(0xab0001).String())
	require.Equal(t, "invalid service id, nobody listens there (8)", cm.ReasonServiceID.String())
	require.Equal(t, "vendor option not supported (35)", cm.ReasonVendorOption.String())
	for r := cm.Reason(1); r <= 35; r++ {
		if r != 34 {
			require.NotContains(t, r.String(), "reason", "%d", r)
		}
	}
	for _, r := range []cm.Reason{0, 34, 36, 0xFFFF} {
		require.Contains(t, r.String(), "reason ")
	}
	require.Equal(t, "no QP available (3)", cm.SIDRNoQP.String())
	require.Equal(t, "SIDR status 6", cm.SIDRStatus(6).String())
	require.Equal(t, "UC", cm.UC.String())
	require.Equal(t, "MRA_REP_RCVD", cm.StateMRAREPReceived.String())
	require.Equal(t, "TIMEWAIT", cm.StateTimewait.String())
	require.Equal(t, "State(0)", cm.State(0).String())
	require.Equal(t, "SIDR_REPLY", cm.EventSIDRReply.String())
	require.Equal(t, "EventKind(77)", cm.EventKind(77).String())
	require.Equal(t, "10.1.2.3", cm.GIDOf(addr("10.1.2.3")).String())
	require.Equal(t, roce.MTU1024, roce.PathMTU(3))
}
