package roce_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// Every packet of the recordings of real peers decodes, encodes to the same
// bytes, and has the ICRC that we compute.
func TestRecordings(t *testing.T) {
	want := expectedCounts(t)
	for _, file := range captureFiles(t) {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			count := 0
			frames(t, file, func(n int, link roce.LinkType, frame []byte) {
				var f roce.Frame
				err := roce.DecodeFrame(link, frame, &f)
				if errors.Is(err, roce.ErrNotRoCE) {
					return
				}
				require.NoError(t, err, "packet %d", n)
				count++
				requireGolden(t, link, frame, &f)
			})
			require.Equal(t, want[name], count, "RoCEv2 packets")
			delete(want, name)
		})
	}
	require.Empty(t, want, "recordings that are missing")
}

func requireGolden(t *testing.T, link roce.LinkType, frame []byte, f *roce.Frame) {
	t.Helper()
	requirePacket(t, f)
	if link != roce.LinkEthernet {
		return
	}
	for _, tags := range [][]uint16{{7}, {7, 0x2009}} { // §9.1 R28
		for _, trailer := range []int{0, 4, 46} { // link padding, FCS
			var g roce.Frame
			tagged := append(ethernet(frame[14:], tags...), make([]byte, trailer)...)
			require.NoError(t, roce.DecodeFrame(link, tagged, &g))
			require.Equal(t, len(tags), int(g.Tags))
			require.Equal(t, f.Headers, g.Headers)
			require.Equal(t, f.Payload, g.Payload)
			requirePacket(t, &g)
		}
	}
}

func requirePacket(t *testing.T, f *roce.Frame) {
	t.Helper()
	var p roce.Packet
	require.NoError(t, p.Decode(f.Payload))
	again := p.Append(garbage(len(f.Payload)))
	f.Seal(again)
	require.Equal(t, f.Payload, again)
	mtu := roce.MaxMTU
	if p.Opcode.Payload() == roce.PayloadFull {
		mtu = len(p.Payload)
	}
	require.NoError(t, p.CheckLength(mtu), "%v", &p)

	require.True(t, f.Check(f.Payload))
	for _, guess := range []uint16{f.ID, 0, ^f.ID} {
		h := f.Headers
		h.ID = guess
		id, ok := h.CheckAnyID(f.Payload, 0xFFFF)
		require.True(t, ok)
		if f.Src.Is4() {
			require.Equal(t, f.ID, id)
		}
		_, ok = h.CheckAnyID(f.Payload, 127)
		require.Equal(t, f.ID <= 127 || f.Src.Is6(), ok)
	}
	requireHeaders(t, f)
}

// requireHeaders decodes and encodes the IP and UDP headers.
func requireHeaders(t *testing.T, f *roce.Frame) {
	t.Helper()
	var (
		udp     roce.UDP
		segment []byte
		err     error
	)
	if f.Src.Is4() {
		var h roce.IPv4
		segment, err = h.Decode(f.IP)
		require.NoError(t, err)
		require.True(t, h.ChecksumOK())
		require.Equal(t, f.IP[:20], h.Append(garbage(20)))
	} else {
		var h roce.IPv6
		segment, err = h.Decode(f.IP)
		require.NoError(t, err)
		require.Equal(t, f.IP[:40], h.Append(garbage(40)))
	}
	payload, err := udp.Decode(segment)
	require.NoError(t, err)
	require.Equal(t, f.Payload, payload)
	require.Equal(t, segment[:8], udp.Append(garbage(8)))
}

func expectedCounts(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(captures + "/expected.txt")
	require.NoError(t, err)
	counts := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		n, name, ok := strings.Cut(line, " ")
		require.True(t, ok)
		counts[name], err = strconv.Atoi(n)
		require.NoError(t, err)
	}
	return counts
}

// decoded is a line of the decodes beside the recordings, which another program made.
var decoded = regexp.MustCompile(`^ *(\d+) +[0-9.]+ \S+ > \S+ .*?: ((?:RC|UC|UD) .*)$`)

// What we say about each packet is what the other program said.
func TestDescriptions(t *testing.T) {
	compared := 0
	for _, file := range captureFiles(t) {
		lines := describedPackets(t, strings.TrimSuffix(file, ".pcap")+".txt")
		frames(t, file, func(n int, link roce.LinkType, frame []byte) {
			want, ok := lines[n]
			if !ok {
				return
			}
			var f roce.Frame
			require.NoError(t, roce.DecodeFrame(link, frame, &f))
			var p roce.Packet
			require.NoError(t, p.Decode(f.Payload))
			require.Equal(t, want, otherWords(&p), "%s %d", file, n)
			compared++
		})
	}
	require.Greater(t, compared, 800)
}

// otherWords is p.String() with RNR timers named as the other program does.
func otherWords(p *roce.Packet) string {
	s := p.String()
	if syn := p.AETH.Syndrome; syn.Kind() == roce.AckRNR {
		s = strings.Replace(s, syn.String(), fmt.Sprintf("RNR-NAK timer %d", syn.Value()), 1)
	}
	return s
}

func describedPackets(t *testing.T, file string) map[int]string {
	t.Helper()
	in, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // not every recording has one
	}
	require.NoError(t, err)
	defer in.Close()
	lines := map[int]string{}
	for s := bufio.NewScanner(in); s.Scan(); {
		m := decoded.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		line, _, _ := strings.Cut(m[2], " CM ")
		lines[n] = strings.TrimSuffix(line, " ICRC ok")
	}
	return lines
}
