package dump_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
)

type appendOrder interface {
	binary.AppendByteOrder
	binary.ByteOrder
}

var orders = map[string]appendOrder{"little": binary.LittleEndian, "big": binary.BigEndian}

func TestPcap(t *testing.T) {
	frames := [][]byte{sealed([]byte("one")), {}, sealed([]byte("three"))}
	for name, order := range orders {
		for magic, want := range map[uint32]time.Duration{0xA1B2C3D4: 123456 * time.Microsecond, 0xA1B23C4D: 123456} {
			t.Run(name, func(t *testing.T) {
				b := pcapFile(order, magic, 1, frames...)
				all, err := readAll(t, b)
				require.ErrorIs(t, err, io.EOF)
				require.Len(t, all, len(frames))
				for i, p := range all {
					require.True(t, bytes.Equal(frames[i], p.Data))
					require.Equal(t, len(frames[i]), p.Len)
					require.Equal(t, roce.LinkEthernet, p.Link)
					require.Equal(t, time.Unix(int64(1000+i), int64(want)).UTC(), p.Time)
				}
				r, err := dump.NewReader(bytes.NewReader(b))
				require.NoError(t, err)
				require.Equal(t, magic == 0xA1B23C4D, r.Nanoseconds())
			})
		}
	}
}

func TestPcapLinkType(t *testing.T) {
	for field, want := range map[uint32]roce.LinkType{
		1: 1, 276: 276, 0x24000001: 1, // FCS length in the upper bits
		0x10001: 0xFFFF, // no link layer has such a number
	} {
		all, err := readAll(t, pcapFile(binary.LittleEndian, 0xA1B2C3D4, field, []byte{1}))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, want, all[0].Link)
	}
}

// What gopacket writes, we read.
func TestOtherWriter(t *testing.T) {
	frame := sealed([]byte("hello"))
	at := time.Unix(1700000000, 123456789).UTC()
	info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame) + 7}

	var classic bytes.Buffer
	w := pcapgo.NewWriterNanos(&classic)
	require.NoError(t, w.WriteFileHeader(65536, glayers.LinkTypeEthernet))
	require.NoError(t, w.WritePacket(info, frame))

	var ng bytes.Buffer
	n, err := pcapgo.NewNgWriterInterface(&ng, pcapgo.NgInterface{Name: "a", LinkType: glayers.LinkTypeRaw, TimestampResolution: 9}, pcapgo.DefaultNgWriterOptions)
	require.NoError(t, err)
	second, err := n.AddInterface(pcapgo.NgInterface{Name: "b", LinkType: glayers.LinkTypeEthernet, TimestampResolution: 9})
	require.NoError(t, err)
	info.InterfaceIndex = second
	require.NoError(t, n.WritePacket(info, frame))
	require.NoError(t, n.Flush())

	for i, b := range [][]byte{classic.Bytes(), ng.Bytes()} {
		all, err := readAll(t, b)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, []dump.Packet{{Time: at, Link: roce.LinkEthernet, Interface: i, Data: frame, Len: len(frame) + 7}}, all)
	}
}

func TestPcapng(t *testing.T) {
	frame := sealed([]byte("hello"))
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			var b []byte
			b = append(b, ngSection(order)...)
			b = append(b, ngBlock(order, 0x12345678, []byte("a block nobody knows"))...)
			b = append(b, ngInterface(order, 1, 0, ngOption(order, 2, 'e', 't', 'h'), ngOption(order, 9, 6), ngOption(order, 0))...)
			b = append(b, ngInterface(order, 101, 30, ngOption(order, 14, order.AppendUint64(nil, 100)...), ngOption(order, 9, 9))...)
			b = append(b, ngPacket(order, 0, 1_000_000_000_123_456, frame, len(frame))...)
			b = append(b, ngPacket(order, 1, 5_000_000_007, frame[14:], 2000)...)
			b = append(b, ngBlock(order, 3, append(order.AppendUint32(nil, 99), frame...))...) // simple
			old := order.AppendUint16(order.AppendUint16(nil, 1), 0)
			old = order.AppendUint32(order.AppendUint32(old, 1), 9)
			old = order.AppendUint32(order.AppendUint32(old, 5), 6)
			b = append(b, ngBlock(order, 2, append(old, 1, 2, 3, 4, 5))...)
			b = append(b, ngSection(order)...) // interfaces start anew
			b = append(b, ngInterface(order, 276, 2)...)
			b = append(b, ngPacket(order, 0, 3_000_000, []byte{7}, 1)...)
			b = append(b, ngBlock(order, 3, append(order.AppendUint32(nil, 4), 1, 2, 3, 4))...)

			all, err := readAll(t, b)
			require.ErrorIs(t, err, io.EOF)
			sec := func(s, ns int64) time.Time { return time.Unix(s, ns).UTC() }
			require.Equal(t, []dump.Packet{
				{Time: sec(1_000_000_000, 123_456_000), Link: 1, Interface: 0, Data: frame, Len: len(frame)},
				{Time: sec(105, 7), Link: 101, Interface: 1, Data: frame[14:], Len: 2000},
				{Link: 1, Data: append(frame[:len(frame):len(frame)], 0, 0), Len: 99}, // block padding cannot be told from data
				{Time: sec(104, 294967305), Link: 101, Interface: 1, Data: []byte{1, 2, 3, 4, 5}, Len: 6},
				{Time: sec(3, 0), Link: 276, Data: []byte{7}, Len: 1},
				{Link: 276, Data: []byte{1, 2}, Len: 4}, // cut to the snap length
			}, all)
		})
	}
}

func TestPcapngTimes(t *testing.T) {
	order := binary.LittleEndian
	for _, c := range []struct {
		resolution byte
		ts         uint64
		want       time.Time
	}{
		{0, 7, time.Unix(7, 0)},
		{3, 7_001, time.Unix(7, 1_000_000)},
		{9, 7_000_000_001, time.Unix(7, 1)},
		{12, 7_000_000_001_999, time.Unix(7, 1)},
		{19, 10_000_000_010_000_000_000, time.Unix(1, 1)},
		{28, 1 << 63, time.Unix(0, 0)},
		{100, 1 << 63, time.Unix(0, 0)},
		{0x80, 7, time.Unix(7, 0)},
		{0x80 | 1, 15, time.Unix(7, 500_000_000)},
		{0x80 | 32, 7<<32 | 1<<31, time.Unix(7, 500_000_000)},
		{0x80 | 63, 1<<63 | 1<<62, time.Unix(1, 500_000_000)},
		{0x80 | 64, 1 << 63, time.Unix(0, 500_000_000)},
		{0xFF, 1 << 63, time.Unix(0, 0)},
	} {
		b := append(ngSection(order), ngInterface(order, 1, 0, ngOption(order, 9, c.resolution))...)
		all, err := readAll(t, append(b, ngPacket(order, 0, c.ts, nil, 0)...))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, c.want.UTC(), all[0].Time, "resolution %#x", c.resolution)
	}
}

func TestNotACapture(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":  {},
		"short":  {0xD4, 0xC3},
		"text":   []byte("hello, world"),
		"gzip":   {0x1F, 0x8B, 8, 0, 0, 0},
		"zeros":  make([]byte, 100),
		"header": {0xD4, 0xC3, 0xB2, 0xA1, 2, 0},
	} {
		_, err := dump.NewReader(bytes.NewReader(b))
		want := dump.ErrNotCapture
		if name == "header" {
			want = dump.ErrCutOff
		}
		require.ErrorIs(t, err, want, name)
		var ce *dump.CaptureError
		require.ErrorAs(t, err, &ce)
		require.NotEmpty(t, ce.Advice)
	}
	_, err := dump.NewReader(bytes.NewReader([]byte("hello")))
	require.EqualError(t, err, "not a packet capture at byte 0, after 0 packets: the file begins with 68 65 6c 6c; "+
		"give a pcap or pcapng file, as tcpdump -w and Wireshark write")
	_, err = dump.NewReader(iotest.ErrReader(errors.ErrUnsupported))
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// However a capture is cut off, what is whole before the cut is read.
func TestCutOff(t *testing.T) {
	order := binary.LittleEndian
	frames := [][]byte{sealed([]byte("one")), sealed([]byte("two"))}
	ng := append(ngSection(order), ngInterface(order, 1, 0)...)
	for _, f := range frames {
		ng = append(ng, ngPacket(order, 0, 1, f, len(f))...)
	}
	for name, b := range map[string][]byte{"pcap": pcapFile(order, 0xA1B2C3D4, 1, frames...), "pcapng": ng} {
		whole := 0
		for n := 12; n <= len(b); n++ {
			all, err := readAll(t, b[:n])
			require.GreaterOrEqual(t, len(all), whole, "%s cut to %d", name, n)
			whole = len(all)
			if errors.Is(err, io.EOF) {
				continue // between two packets or blocks
			}
			require.ErrorIs(t, err, dump.ErrCutOff, "%s cut to %d", name, n)
			require.ErrorContains(t, err, "bytes short")
		}
		require.Equal(t, len(frames), whole)
	}
}

func TestCorrupt(t *testing.T) {
	order := binary.LittleEndian
	start := append(ngSection(order), ngInterface(order, 1, 0)...)
	huge := pcapFile(order, 0xA1B2C3D4, 1, []byte{1, 2, 3})
	order.PutUint32(huge[24+8:], 0xFFFFFFF0)
	lengths := append(bytes.Clone(start), ngPacket(order, 0, 1, []byte{1, 2, 3, 4}, 4)...)
	order.PutUint32(lengths[len(lengths)-4:], 40)
	block := func(typ uint32, n int) []byte {
		return append(bytes.Clone(start), ngBlock(order, typ, make([]byte, n))...)
	}
	claim := append(bytes.Clone(start), ngPacket(order, 0, 1, []byte{1, 2, 3, 4}, 4)...)
	order.PutUint32(claim[len(start)+8+12:], 5)
	for name, b := range map[string][]byte{
		"pcap length":            huge,
		"no such interface":      append(bytes.Clone(start), ngPacket(order, 1, 1, nil, 0)...),
		"no interface at all":    append(ngSection(order), ngPacket(order, 0, 1, nil, 0)...),
		"simple, no interface":   append(ngSection(order), ngBlock(order, 3, make([]byte, 8))...),
		"simple, no length":      block(3, 0),
		"packet too short":       block(6, 16),
		"old packet too short":   block(2, 16),
		"interface too short":    block(1, 4),
		"block of 8 bytes":       append(bytes.Clone(start), 1, 0, 0, 0, 8, 0, 0, 0),
		"block of 13 bytes":      append(bytes.Clone(start), 1, 0, 0, 0, 13, 0, 0, 0),
		"block of 4 GiB":         append(bytes.Clone(start), 6, 0, 0, 0, 0xFC, 0xFF, 0xFF, 0xFF),
		"lengths differ":         lengths,
		"more than is there":     claim,
		"section without a mark": append(bytes.Clone(start), ngBlock(order, 0x0A0D0D0A, make([]byte, 16))...),
	} {
		_, err := readAll(t, b)
		require.ErrorIs(t, err, dump.ErrCorrupt, name)
	}
}

// A claim of many bytes costs no more memory than the bytes that are there.
func TestClaimsAllocateNothing(t *testing.T) {
	b := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, []byte{1, 2, 3})
	binary.LittleEndian.PutUint32(b[24+8:], 16<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readAll(t, b)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, dump.ErrCutOff)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestInterfaceLimit(t *testing.T) {
	order := binary.LittleEndian
	b := append(ngSection(order), bytes.Repeat(ngInterface(order, 1, 0), 1<<16)...)
	_, err := readAll(t, b)
	require.ErrorIs(t, err, io.EOF)
	_, err = readAll(t, append(b, ngInterface(order, 1, 0)...))
	require.ErrorIs(t, err, dump.ErrCorrupt)
}

// Input that trickles in gives the same packets.
func TestSlowInput(t *testing.T) {
	for _, file := range []string{"rc-read-multi.pcap", "tool-rc-pingpong.pcap"} {
		b := readFile(t, file)
		want, err := readAll(t, b)
		require.ErrorIs(t, err, io.EOF)
		r, err := dump.NewReader(iotest.OneByteReader(bytes.NewReader(b)))
		require.NoError(t, err)
		for i := range want {
			var p dump.Packet
			require.NoError(t, r.Next(&p))
			require.Equal(t, want[i], p)
		}
	}
	r, err := dump.NewReader(io.MultiReader(bytes.NewReader(readFile(t, "rc-read.pcap")[:60]), iotest.ErrReader(errors.ErrUnsupported)))
	require.NoError(t, err)
	require.ErrorIs(t, r.Next(new(dump.Packet)), errors.ErrUnsupported)
}
