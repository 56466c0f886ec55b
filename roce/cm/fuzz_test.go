package cm_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// reserved returns the mask of the bits that a message does not keep.
func kept(attr cm.Attribute) []byte {
	b := cm.NewMessage(attr).Append(nil)
	for i := 24; i < len(b); i++ {
		b[i] = 0xFF
	}
	m, _ := cm.Decode(b)
	b = m.Append(nil)
	for i := range 24 {
		b[i] = 0xFF
	}
	b[18], b[19] = 0, 0
	return b
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(captures + "*.pcap")
	require.NoError(f, err)
	for _, file := range files {
		for _, p := range recording(f, file) {
			f.Add(p.mad)
		}
	}
	for _, row := range layout {
		f.Add(row.set.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keep := bytes.Clone(b)
		m, err := cm.Decode(b)
		require.Equal(t, keep, b, "the input is only read")
		if err != nil {
			var de *cm.DecodeError
			require.ErrorAs(t, err, &de)
			return
		}
		again := m.Append(nil)
		for i, mask := range kept(m.Attribute()) {
			require.Equal(t, b[i]&mask, again[i], "byte %d", i)
		}
		if rej, ok := m.(*cm.REJ); ok {
			require.LessOrEqual(t, len(rej.Info()), cm.MaxARI)
		}
		other, err := cm.Decode(again)
		require.NoError(t, err)
		require.Equal(t, m, other)
	})
}

func FuzzIPHeader(f *testing.F) {
	six := cm.IPHeader{SrcPort: 1, Src: addr("fd77::11"), Dst: addr("fd77::12")}
	four := cm.IPHeader{SrcPort: 0xFFFF, Src: addr("10.77.0.11"), Dst: addr("10.77.0.12")}
	f.Add(six.Append(nil))
	f.Add(four.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again cm.IPHeader
		if h.Decode(b) != nil {
			return
		}
		require.Equal(t, h.Src.Is4(), h.Dst.Is4())
		if h.Src.Is4In6() && h.Dst.Is4In6() {
			return // an IPv4 address in an IPv6 header: written as what it is
		}
		require.NoError(t, again.Decode(h.Append(nil)))
		require.Equal(t, h, again)
	})
}
