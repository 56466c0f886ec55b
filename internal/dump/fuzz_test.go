package dump_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
)

// Any bytes give packets and an end or a typed error, and the counts agree.
func FuzzRun(f *testing.F) {
	for _, c := range cases() {
		f.Add(pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, c.frame), false)
		f.Add(pcapFile(binary.BigEndian, 0xA1B23C4D, 101, c.frame[min(14, len(c.frame)):]), true)
		for _, order := range orders {
			b := append(ngSection(order), ngInterface(order, 1, 100, ngOption(order, 9, 9))...)
			b = append(b, ngPacket(order, 0, 1, c.frame, len(c.frame))...)
			f.Add(append(b, ngBlock(order, 3, append(order.AppendUint32(nil, 99), c.frame...))...), true)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, asJSON bool) {
		var out bytes.Buffer
		s, err := dump.Run(bytes.NewReader(b), &out, dump.Options{JSON: asJSON})
		if err != nil {
			var ce *dump.CaptureError
			require.ErrorAs(t, err, &ce)
			require.LessOrEqual(t, ce.Offset, int64(len(b)))
		}
		require.LessOrEqual(t, s.RoCE+s.Malformed, s.Packets)
		require.LessOrEqual(t, s.ICRCOK+s.ICRCBad, s.RoCE)
		if out.Len() > 0 {
			require.Equal(t, int(s.Packets)+1, bytes.Count(out.Bytes(), []byte("\n")))
		}
		again, _ := dump.Run(bytes.NewReader(b), io.Discard, dump.Options{JSON: !asJSON})
		require.Equal(t, s, again)
	})
}
