package roce_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// seedFrames calls f with the frames of a few recordings that have every kind of
// header between them.
func seedFrames(f *testing.F, add func(link roce.LinkType, frame []byte)) {
	for _, name := range []string{"synthetic-all-opcodes", "v6-ud-send", "rc-sendinv", "rc-write-pad"} {
		frames(f, captures+"/"+name+".pcap", func(_ int, link roce.LinkType, frame []byte) { add(link, frame) })
	}
}

// seedPackets adds the packets of the recordings.
func seedPackets(f *testing.F) {
	seedFrames(f, func(link roce.LinkType, frame []byte) {
		var fr roce.Frame
		if roce.DecodeFrame(link, frame, &fr) == nil {
			f.Add(fr.Payload)
		}
	})
}

func FuzzDecode(f *testing.F) {
	seedPackets(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		keep := bytes.Clone(b)
		var p roce.Packet
		err := p.Decode(b)
		require.Equal(t, keep, b, "the input is only read")
		if err != nil {
			var de *roce.DecodeError
			require.ErrorAs(t, err, &de)
			return
		}
		require.True(t, p.Opcode.Known())
		requireSame(t, b, &p)
		require.NotEmpty(t, p.String())
		_ = p.CheckLength(1024)
	})
}

func FuzzFrame(f *testing.F) {
	seedFrames(f, func(link roce.LinkType, frame []byte) {
		f.Add(uint16(link), frame)
		f.Add(uint16(roce.LinkRaw), frame[14:])
		f.Add(uint16(link), ethernet(frame[14:], 5, 6))
	})
	f.Fuzz(func(t *testing.T, link uint16, b []byte) {
		var fr roce.Frame
		err := roce.DecodeFrame(roce.LinkType(link), b, &fr)
		if err != nil {
			var fe *roce.FrameError
			require.ErrorAs(t, err, &fe)
			require.True(t, len(fr.Payload) == 0 || errors.Is(err, roce.ErrTruncated) || errors.Is(err, roce.ErrNotRoCE))
			return
		}
		require.Equal(t, uint16(roce.Port), fr.DstPort)
		require.Len(t, fr.Payload, int(fr.UDPLen)-8)
		require.True(t, bytes.Contains(b, fr.Payload))
		if fr.Check(fr.Payload) {
			_, ok := fr.CheckAnyID(fr.Payload, 0xFFFF)
			require.True(t, ok)
		}
	})
}

func FuzzIPv4(f *testing.F) {
	f.Add(unhex(f, vectors["§2.2 IPv4"]))
	f.Add(unhex(f, vectors["§2.4 ConnectX-4 Lx CNP"]))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h roce.IPv4
		payload, err := h.Decode(b)
		if err != nil {
			var fe *roce.FrameError
			require.ErrorAs(t, err, &fe)
			return
		}
		require.Len(t, payload, int(h.TotalLen)-20)
		again := h.Append(garbage(20))
		if right := bytes.Equal(b[:20], again); right || h.Checksum != 0xFFFF { // which is as good as 0
			require.Equal(t, right, h.ChecksumOK())
		}
		copy(again[10:12], b[10:12])
		require.Equal(t, b[:20], again)
	})
}

func FuzzIPv6(f *testing.F) {
	f.Add(unhex(f, vectors["§2.3 IPv6"]))
	f.Add(unhex(f, vectors["IPv6 UC SEND_ONLY, class 226"]))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h roce.IPv6
		payload, err := h.Decode(b)
		if err != nil {
			var fe *roce.FrameError
			require.ErrorAs(t, err, &fe)
			return
		}
		require.Len(t, payload, int(h.PayloadLen))
		require.Equal(t, b[:40], h.Append(garbage(40)))
	})
}

func FuzzUDP(f *testing.F) {
	f.Add(unhex(f, "c12312b7 000b0102 aabbcc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h roce.UDP
		payload, err := h.Decode(b)
		if err != nil {
			var fe *roce.FrameError
			require.ErrorAs(t, err, &fe)
			return
		}
		require.Equal(t, b[8:], payload)
		require.Equal(t, b[:8], h.Append(garbage(8)))
	})
}

// Whatever the packet, the check finds the identification it was sealed with,
// and takes nothing that a full check of the same identification refuses.
func FuzzCheckAnyID(f *testing.F) {
	seedFrames(f, func(link roce.LinkType, frame []byte) {
		var fr roce.Frame
		if roce.DecodeFrame(link, frame, &fr) == nil {
			f.Add(fr.Payload, fr.ID, uint16(3))
		}
	})
	f.Fuzz(func(t *testing.T, b []byte, id, guess uint16) {
		h := helloHeaders
		h.ID = guess
		if got, ok := h.CheckAnyID(b, 0xFFFF); ok {
			h.ID = got
			require.True(t, h.Check(b))
		}
		if len(b) < roce.BTHLen+roce.ICRCLen || len(b) > 0xFFFF-28 {
			return
		}
		b = bytes.Clone(b)
		h.ID = id
		h.Seal(b)
		h.ID = guess
		got, ok := h.CheckAnyID(b, 0xFFFF)
		require.True(t, ok)
		require.Equal(t, id, got)
	})
}
