package cm_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// Every packet to queue pair 1 of the recordings of real peers decodes and encodes
// to the same bytes.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(captures + "*.pcap")
	require.NoError(t, err)
	seen := map[cm.Attribute]int{}
	for _, file := range files {
		for _, p := range recording(t, file) {
			m, err := cm.Decode(p.mad)
			require.NoError(t, err, "%s packet %d", file, p.n)
			require.Equal(t, p.mad, m.Append(nil), "%s packet %d: %v", file, p.n, m.Attribute())
			prefix := []byte("before")
			require.Equal(t, append(prefix, p.mad...), m.Append(prefix))
			seen[m.Attribute()]++
		}
	}
	require.Equal(t, map[cm.Attribute]int{
		cm.AttrREQ: 9, cm.AttrREP: 7, cm.AttrRTU: 8, cm.AttrREJ: 2, cm.AttrMRA: 1,
		cm.AttrDREQ: 8, cm.AttrDREP: 7, cm.AttrSIDRREQ: 1, cm.AttrSIDRREP: 1,
	}, seen)
}

// The fields of one handshake, as §5.6 and §5.7 quote them.
func TestFieldsOfRping(t *testing.T) {
	all := recording(t, captures+"cm-rping.pcap")
	require.Len(t, all, 5)
	var req cm.REQ
	require.NoError(t, req.Decode(all[0].mad))
	require.Equal(t, cm.REQ{
		Header: cm.Header{TID: 0x2a61500d9}, LocalID: 0xd90015a6, Service: cm.PortSpaceTCP.Service(7174),
		CAGUID: 0x505400fffe770001, QPN: 0x51, ResponderResources: 1, InitiatorDepth: 1,
		RemoteTimeout: 20, LocalTimeout: 20, MaxCMRetries: 15, StartPSN: 0xfaac31, RetryCount: 7, RNRRetry: 7,
		PKey: 0xFFFF, MTU: 3, Primary: cm.Path{
			LocalLID: 0xFFFF, RemoteLID: 0xFFFF, LocalGID: cm.GIDOf(all[0].src), RemoteGID: cm.GIDOf(all[0].dst),
			FlowLabel: 0x2546F, HopLimit: 64, ACKTimeout: 19,
		},
		Private: req.Private,
	}, req)
	require.False(t, req.HasAlternate())
	var ip cm.IPHeader
	require.NoError(t, ip.Decode(req.Private[:]))
	require.Equal(t, all[0].src, ip.Src)
	require.Equal(t, all[0].dst, ip.Dst)
	require.Equal(t, req.Private[:cm.IPHeaderLen], ip.Append(nil))

	var rep cm.REP
	require.NoError(t, rep.Decode(all[1].mad))
	require.Equal(t, cm.REP{
		Header: req.Header, LocalID: 0x17c245c5, RemoteID: req.LocalID, QPN: 0x58, StartPSN: 0x282382,
		ResponderResources: 1, InitiatorDepth: 1, TargetACKDelay: 15, RNRRetry: 7, CAGUID: 0x505400fffe770002,
	}, rep)
	require.Equal(t, rep.CAGUID, cm.GUIDFromMAC([6]byte{0x52, 0x54, 0, 0x77, 0, 2}))
}
