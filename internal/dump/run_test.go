package dump_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
)

// run dumps a capture and returns its lines.
func run(t testing.TB, b []byte, o dump.Options) ([]string, dump.Summary, error) {
	t.Helper()
	var out bytes.Buffer
	s, err := dump.Run(bytes.NewReader(b), &out, o)
	text := out.String()
	if text == "" {
		return nil, s, err
	}
	require.True(t, strings.HasSuffix(text, "\n"))
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), s, err
}

// Every recording: each RoCEv2 packet decoded, each ICRC right, a line a packet.
func TestRecordings(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(string(readFile(t, "expected.txt"))) {
		count, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok)
		want[file] = count
	}
	for _, file := range recordingFiles(t) {
		name := filepath.Base(file)
		lines, s, err := run(t, readFile(t, name), dump.Options{})
		require.NoError(t, err, name)
		require.Len(t, lines, int(s.Packets)+1)
		require.Equal(t, s.String(), lines[len(lines)-1])
		require.Equal(t, want[name], strconv.FormatUint(s.RoCE, 10), name)
		require.Equal(t, s.RoCE, s.ICRCOK, name)
		require.Zero(t, s.ICRCBad+s.Malformed, name)

		objects, js, err := run(t, readFile(t, name), dump.Options{JSON: true})
		require.NoError(t, err)
		require.Equal(t, s, js)
		require.Len(t, objects, len(lines))
		for _, o := range objects {
			require.True(t, json.Valid([]byte(o)), o)
		}
	}
}

func TestText(t *testing.T) {
	lines, _, err := run(t, readFile(t, "rc-cas.pcap"), dump.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"     1 0.000000 10.77.0.11 > 10.77.0.12 sport 50700 id 0x46a6 DF: RC CMP_SWAP qp 0x2b psn 0x001000 ackreq AtomicETH va 0x560555728000 rkey 0x1cd9 swap/add 0x1122334455667788 cmp 0x706050403020100 icrc ok",
		"     2 0.002426 10.77.0.12 > 10.77.0.11 sport 50700 id 0x552b DF: RC ATOMIC_ACK qp 0x24 psn 0x001000 AETH 0x1f (ACK credits 31) msn 1 orig 0x706050403020100 icrc ok",
		"     3 0.005558 10.77.0.11 > 10.77.0.12 sport 50700 id 0x46a8 DF: RC CMP_SWAP qp 0x2b psn 0x001001 ackreq AtomicETH va 0x560555728000 rkey 0x1cd9 swap/add 0x1122334455667788 cmp 0x706050403020100 icrc ok",
		"     4 0.005913 10.77.0.12 > 10.77.0.11 sport 50700 id 0x552c DF: RC ATOMIC_ACK qp 0x24 psn 0x001001 AETH 0x1f (ACK credits 31) msn 2 orig 0x1122334455667788 icrc ok",
		"packets=4 roce=4 icrc_ok=4 icrc_bad=0 malformed=0",
	}, lines)
}

func TestJSON(t *testing.T) {
	lines, _, err := run(t, readFile(t, "rc-cas.pcap"), dump.Options{JSON: true})
	require.NoError(t, err)
	require.JSONEq(t, `{"n":2,"time":"2026-11-29T16:20:47.769458Z","kind":"roce","src":"10.77.0.12","dst":"10.77.0.11",
		"sport":50700,"dport":4791,"ip":{"id":21803,"df":true,"tos":0,"ttl":64},"op":"RC ATOMIC_ACK","opcode":18,"qp":36,
		"psn":4096,"pkey":"0xffff","aeth":{"syndrome":"0x1f","text":"ACK credits 31","msn":1},"orig":"0x706050403020100",
		"payload":0,"icrc":"ok"}`, lines[1])
	require.JSONEq(t, `{"packets":4,"roce":4,"icrc_ok":4,"icrc_bad":0,"malformed":0}`, lines[4])

	lines, _, err = run(t, readFile(t, "synthetic-all-opcodes.pcap"), dump.Options{JSON: true})
	require.NoError(t, err)
	for i, want := range map[int]string{
		4:  `"imm":"0xdeadbeef"`,
		6:  `"reth":{"va":"0x700000001000","rkey":"0x101","len":600}`,
		26: `"atomic":{"va":"0x700000001000","rkey":"0x101","swap_add":"0x2","compare":"0x1"}`,
		28: `"inv_rkey":"0x101"`,
		30: `"feth":{"type":1,"select":0}`,
		35: `"deth":{"qkey":"0x11111111","srcqp":51}`,
		36: `"op":"CNP","opcode":129,"qp":17,"psn":0,"becn":true`,
		37: `"ip":{"id":0,"tos":0,"ttl":64,"flow":74565}`,
	} {
		require.Contains(t, lines[i], want)
	}
}

// cases are frames of every kind and what is said of them.
func cases() map[string]struct {
	frame   []byte
	text    string
	json    string
	summary dump.Summary
} {
	good := sealed([]byte("hello"))
	edit := func(at int, v ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], v)
		return b
	}
	tagged := append(append(bytes.Clone(good[:12]), 0x81, 0, 0x20, 5), good[12:]...)
	v1 := edit(12, 0x89, 0x15)
	train := sealed(make([]byte, 5000))
	train[len(train)-1] ^= 1
	type c = struct {
		frame   []byte
		text    string
		json    string
		summary dump.Summary
	}
	return map[string]c{
		"good":         {good, "payload 5 icrc ok", `"icrc":"ok"`, dump.Summary{RoCE: 1, ICRCOK: 1}},
		"padded":       {append(bytes.Clone(good), make([]byte, 9)...), "payload 5 icrc ok", `"payload":5`, dump.Summary{RoCE: 1, ICRCOK: 1}},
		"VLAN":         {tagged, "vlan 5 id 0x0 DF: RC SEND_ONLY", `"vlan":8197`, dump.Summary{RoCE: 1, ICRCOK: 1}},
		"bad ICRC":     {edit(len(good)-1, 0), "icrc bad: found 0x", `"icrc":"bad"`, dump.Summary{RoCE: 1, ICRCBad: 1}},
		"train":        {train, "perhaps a train", `"hint":"longer than any`, dump.Summary{RoCE: 1, ICRCBad: 1}},
		"TOS":          {edit(15, 2), "tos 0x2: RC", `"tos":2`, dump.Summary{RoCE: 1, ICRCOK: 1}},
		"unknown":      {edit(42, 0xFF), "sport 49443 id 0x0 DF: MALFORMED roce: unknown opcode 0xff (24 bytes)", `"error":"roce: unknown opcode 0xff (24 bytes)"`, dump.Summary{Malformed: 1}},
		"fragment":     {edit(20, 0x20), "MALFORMED roce: IP fragment", `"kind":"malformed"`, dump.Summary{Malformed: 1}},
		"UDP length":   {edit(38, 0, 31), "MALFORMED roce: UDP length", `"kind":"malformed"`, dump.Summary{Malformed: 1}},
		"UDP too long": {edit(38, 0, 99), "MALFORMED roce: UDP length", `"kind":"malformed"`, dump.Summary{Malformed: 1}},
		"RoCEv1":       {v1, "0.000000 RoCEv1 (EtherType 0x8915), not decoded", `"kind":"rocev1"`, dump.Summary{}},
		"other port":   {edit(36, 0, 53), "192.0.2.1 > 192.0.2.2 UDP 49443 > 53: other: roce: UDP", `"dport":53`, dump.Summary{}},
		"TCP":          {edit(23, 6), "192.0.2.1 > 192.0.2.2: other: roce: IP", `"kind":"other"`, dump.Summary{}},
		"ARP":          {edit(12, 8, 6), "0.000000 other: roce: frame carries no IP packet", `"kind":"other"`, dump.Summary{}},
		"runt":         {good[:5], "other: roce: link header is cut off", `"kind":"other"`, dump.Summary{}},
	}
}

func TestKinds(t *testing.T) {
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			b := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, c.frame)
			c.summary.Packets = 1
			lines, s, err := run(t, b, dump.Options{})
			require.NoError(t, err)
			require.Equal(t, c.summary, s)
			require.Contains(t, lines[0], c.text)
			lines, s, err = run(t, b, dump.Options{JSON: true})
			require.NoError(t, err)
			require.Equal(t, c.summary, s)
			require.Contains(t, lines[0], c.json)
			require.True(t, json.Valid([]byte(lines[0])))
		})
	}
}

// A capture with a short snap length: headers are shown, ICRCs are not judged.
func TestSnapLength(t *testing.T) {
	frame := sealed(make([]byte, 1000))
	for n := 42; n < len(frame); n += 3 {
		b := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, frame[:n])
		binary.LittleEndian.PutUint32(b[24+12:], uint32(len(frame)))
		lines, s, err := run(t, b, dump.Options{})
		require.NoError(t, err)
		if n < 42+12 {
			require.Equal(t, dump.Summary{Packets: 1, Malformed: 1}, s, "%d", n)
			continue
		}
		require.Equal(t, dump.Summary{Packets: 1, RoCE: 1}, s, "%d", n)
		require.Contains(t, lines[0], "RC SEND_ONLY qp 0x11 psn 0x000007 payload 1000 icrc unchecked (")
		require.Contains(t, lines[0], strconv.Itoa(n-42)+" of 1016 bytes captured)")
	}
}

func TestTimes(t *testing.T) {
	frames := [][]byte{sealed(nil), sealed(nil)}
	lines, _, err := run(t, pcapFile(binary.BigEndian, 0xA1B23C4D, 1, frames...), dump.Options{})
	require.NoError(t, err)
	require.Contains(t, lines[1], "     2 1.000000000 192")

	back := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, frames...)
	binary.LittleEndian.PutUint32(back[len(back)-len(frames[1])-16:], 999) // a clock that was set back
	lines, _, err = run(t, back, dump.Options{})
	require.NoError(t, err)
	require.Contains(t, lines[1], "     2 -1.000000 192")
}

// Times that no calendar has are printed all the same.
func TestAbsurdTimes(t *testing.T) {
	order := binary.LittleEndian
	b := append(ngSection(order), ngInterface(order, 1, 0, ngOption(order, 9, 0), ngOption(order, 14, order.AppendUint64(nil, 1<<62)...))...)
	b = append(b, ngPacket(order, 0, 1<<63, nil, 0)...)
	b = append(b, ngInterface(order, 1, 0, ngOption(order, 9, 0), ngOption(order, 14, order.AppendUint64(nil, 3<<62)...))...)
	b = append(b, ngPacket(order, 1, 1<<63, nil, 0)...)
	b = append(b, ngBlock(order, 3, order.AppendUint32(nil, 0))...)
	for _, o := range []dump.Options{{}, {JSON: true}} {
		lines, s, err := run(t, b, o)
		require.NoError(t, err)
		require.Equal(t, uint64(3), s.Packets)
		require.Len(t, lines, 4)
	}
}

// A capture that is cut off prints what came before, and its counts.
func TestTruncatedCapture(t *testing.T) {
	whole := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, sealed([]byte("one")), sealed([]byte("two")))
	for _, o := range []dump.Options{{}, {JSON: true}} {
		lines, s, err := run(t, whole[:len(whole)-3], o)
		require.ErrorIs(t, err, dump.ErrCutOff)
		require.Equal(t, dump.Summary{Packets: 1, RoCE: 1, ICRCOK: 1}, s)
		require.Len(t, lines, 2)
		require.Contains(t, lines[1], "1")
	}
}

func TestNoOutputForNoCapture(t *testing.T) {
	lines, _, err := run(t, []byte("this is not it"), dump.Options{})
	require.ErrorIs(t, err, dump.ErrNotCapture)
	require.Empty(t, lines)
}

// brokenWriter fails after n bytes.
type brokenWriter struct{ n int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

func TestBrokenOutput(t *testing.T) {
	b := bytes.Clone(readFile(t, "tool-ib_send_lat.pcap"))
	for range 6 { // more than the output buffer holds
		b = append(b, b[24:]...)
	}
	for _, n := range []int{0, 70_000} {
		for _, o := range []dump.Options{{}, {JSON: true}} {
			_, err := dump.Run(bytes.NewReader(b), &brokenWriter{n}, o)
			require.ErrorIs(t, err, errBroken)
		}
	}
	_, err := dump.Run(io.MultiReader(bytes.NewReader(b[:1000]), iotest.ErrReader(errBroken)), io.Discard, dump.Options{})
	require.ErrorIs(t, err, errBroken)
}

// From a live capture each packet is printed when it comes, not at the end.
func TestLive(t *testing.T) {
	b := readFile(t, "rc-read.pcap")
	in, feed := io.Pipe()
	result, out := io.Pipe()
	go func() {
		_, err := dump.Run(in, out, dump.Options{})
		out.CloseWithError(err)
	}()
	lines := bufio.NewScanner(result)
	at := 24
	for _, part := range [][]byte{b[:at+16+int(binary.LittleEndian.Uint32(b[at+8:]))], b[at+16+int(binary.LittleEndian.Uint32(b[at+8:])):]} {
		_, err := feed.Write(part)
		require.NoError(t, err)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "RC READ_")
	}
	require.NoError(t, feed.Close())
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	require.NoError(t, lines.Err())
	require.Equal(t, "packets=6 roce=6 icrc_ok=6 icrc_bad=0 malformed=0", last)
}

func BenchmarkRun(b *testing.B) {
	one := pcapFile(binary.LittleEndian, 0xA1B2C3D4, 1, sealed(make([]byte, 1024)))
	capture := append(bytes.Clone(one[:24]), bytes.Repeat(one[24:], 10_000)...)
	for name, o := range map[string]dump.Options{"text": {}, "json": {JSON: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(capture)))
			for b.Loop() {
				if _, err := dump.Run(bytes.NewReader(capture), io.Discard, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
