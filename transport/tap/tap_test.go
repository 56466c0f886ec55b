package tap

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
	"github.com/gohixl/hixl/transport/transporttest"
	"github.com/gohixl/hixl/transport/udp"
)

var (
	addrA = netip.MustParseAddr("127.77.2.1")
	addrB = netip.MustParseAddr("127.77.2.2")
)

func open(t testing.TB, addr netip.Addr) *udp.Conn {
	t.Helper()
	c, err := udp.Open(addr, udp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		a := Wrap(open(t, addrA), io.Discard, Config{})
		b := Wrap(open(t, addrB), io.Discard, Config{Snaplen: 64})
		t.Cleanup(func() {
			_, _ = a.Close(), b.Close()
			require.NoError(t, a.Err())
		})
		return a, b
	})
}

// record is one packet of a capture, as another program reads it.
type record struct {
	gopacket.CaptureInfo
	frame roce.Frame
	udp   *layers.UDP
	sum   bool // the UDP checksum is right
}

func readAll(t *testing.T, b []byte) (all []record) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{ErrorOnMismatchingLinkType: true})
	require.NoError(t, err)
	require.Equal(t, "hixl", r.SectionInfo().Application)
	require.Equal(t, layers.LinkTypeEthernet, r.LinkType())
	i, err := r.Interface(0)
	require.NoError(t, err)
	require.EqualValues(t, 9, i.TimestampResolution)
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		rec := record{CaptureInfo: info}
		if err := roce.DecodeFrame(roce.LinkEthernet, data, &rec.frame); info.CaptureLength == info.Length {
			require.NoError(t, err)
		}
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		if u, ok := p.TransportLayer().(*layers.UDP); ok {
			rec.udp = u
			seg := append(append([]byte(nil), u.Contents...), u.Payload...)
			rec.sum = roce.UDPChecksum(rec.frame.Src, rec.frame.Dst, seg) == u.Checksum
		}
		all = append(all, rec)
	}
}

// seal makes a packet of payload bytes as it must be for the given identification.
func seal(src, dst netip.Addr, srcPort, id uint16, psn roce.PSN, payload int) []byte {
	p := roce.Packet{Opcode: roce.OpSendOnly, DestQP: 0x11, PSN: psn, PKey: 0xffff}
	p.SetPayload(bytes.Repeat([]byte{byte(psn)}, payload))
	b := p.Append(nil)
	h := roce.Headers{Src: src, Dst: dst, SrcPort: srcPort, DstPort: roce.Port, ID: id, Frag: roce.DontFragment}
	h.Seal(b)
	return b
}

// What was sent over real sockets stands in both captures with a right ICRC,
// trains cut to packets.
func TestCaptureOfSockets(t *testing.T) {
	var fileA, fileB bytes.Buffer
	inner := open(t, addrA)
	a := Wrap(inner, &fileA, Config{})
	b := Wrap(open(t, addrB), &fileB, Config{})
	begin := time.Now()
	port := a.SourcePort(0xc123)

	batch := []transport.Tx{
		{Data: seal(addrA, addrB, port, 0, 0, 100), Dst: addrB, SrcPort: port, TOS: 2},
		{Data: seal(addrA, addrB, port, 0, 1, 1024), Dst: addrB, SrcPort: port},
	}
	if a.Caps().Trains.On() {
		var train []byte
		for i := range 5 {
			train = append(train, seal(addrA, addrB, port, uint16(i), roce.PSN(2+i), 256)...)
		}
		seg := len(train) / 5
		batch = append(batch, transport.Tx{Data: train, Seg: seg, Dst: addrB, SrcPort: port})
	}
	total := 0
	for i := range batch {
		total += batch[i].Packets()
	}
	_, err := a.WriteBatch(batch)
	require.NoError(t, err)
	slots := transport.NewBatch(b, 8)
	for got := 0; got < total; {
		n, err := b.ReadBatch(slots, true)
		require.NoError(t, err)
		for i := range n {
			got += slots[i].Packets()
		}
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())

	for name, file := range map[string]*bytes.Buffer{"sender": &fileA, "receiver": &fileB} {
		records := readAll(t, file.Bytes())
		require.Len(t, records, total, name)
		for i, r := range records {
			require.Equal(t, addrA, r.frame.Src)
			require.Equal(t, addrB, r.frame.Dst)
			require.Equal(t, port, r.frame.SrcPort)
			require.True(t, r.sum, "UDP checksum")
			require.True(t, r.frame.Check(r.frame.Payload), "%s: ICRC of packet %d", name, i)
			var p roce.Packet
			require.NoError(t, p.Decode(r.frame.Payload))
			require.EqualValues(t, i, p.PSN)
			require.WithinRange(t, r.Timestamp, begin, time.Now())
		}
		require.EqualValues(t, 2, records[0].frame.TOS)
	}
	require.EqualValues(t, outbound, direction(t, fileA.Bytes()))
	require.EqualValues(t, inbound, direction(t, fileB.Bytes()))
}

// direction reads the flags of the first packet block, which pcapgo skips.
func direction(t *testing.T, b []byte) uint32 {
	t.Helper()
	for len(b) > 0 {
		kind, size := le.Uint32(b), le.Uint32(b[4:])
		require.Zero(t, size%4)
		require.Equal(t, size, le.Uint32(b[size-4:]), "length at both ends")
		if kind == blockPacket {
			kept := (le.Uint32(b[20:]) + 3) &^ 3
			option := b[28+kept:]
			require.EqualValues(t, optFlags, le.Uint16(option))
			return le.Uint32(option[4:])
		}
		b = b[size:]
	}
	t.Fatal("no packet")
	return 0
}

// Where headers are visible they are written as they are, both families, at the
// time of the given clock.
func TestCaptureOfSimulation(t *testing.T) {
	for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		n := sim.New(sim.Config{Link: sim.Link{Delay: 1500 * time.Nanosecond}})
		src, dst := netip.MustParseAddr(addrs[0]), netip.MustParseAddr(addrs[1])
		clock := func() time.Time { return time.Unix(1000, int64(n.Now().Sub(sim.Start))) }
		var file bytes.Buffer
		a, err := n.Host(src)
		require.NoError(t, err)
		peer, err := n.Host(dst)
		require.NoError(t, err)
		b := Wrap(peer, &file, Config{Clock: clock})

		data := seal(src, dst, 0xd000, 0xbeef, 7, 64)
		_, err = a.WriteBatch([]transport.Tx{{Data: data, Dst: dst, SrcPort: 0xd000, ID: 0xbeef, TOS: 0xb9}})
		require.NoError(t, err)
		n.Advance(n.Next())
		k, err := b.ReadBatch(transport.NewBatch(b, 2), false)
		require.NoError(t, err)
		require.Equal(t, 1, k)
		_, err = b.WriteBatch([]transport.Tx{{Data: seal(dst, src, 0xd000, 0xcafe, 8, 5), Dst: src, SrcPort: 0xd000, ID: 0xcafe}})
		require.NoError(t, err)

		records := readAll(t, file.Bytes())
		require.Len(t, records, 2)
		require.EqualValues(t, 0xb9, records[0].frame.TOS)
		if src.Is4() {
			require.EqualValues(t, 0xbeef, records[0].frame.ID)
			require.EqualValues(t, 0xcafe, records[1].frame.ID)
		}
		for _, r := range records {
			require.True(t, r.sum)
			require.True(t, r.frame.Check(r.frame.Payload))
			require.True(t, r.Timestamp.Equal(time.Unix(1000, 1500)), "%v", r.Timestamp)
		}
	}
}

func TestSnaplen(t *testing.T) {
	n := sim.New(sim.Config{})
	h, err := n.Host(netip.MustParseAddr("10.0.0.1"))
	require.NoError(t, err)
	var file bytes.Buffer
	c := Wrap(h, &file, Config{Snaplen: 61})
	for _, size := range []int{8, 19, 20, 500} {
		_, err = c.WriteBatch([]transport.Tx{{Data: make([]byte, size), Dst: netip.MustParseAddr("10.0.0.2")}})
		require.NoError(t, err)
	}
	for i, r := range readAll(t, file.Bytes()) {
		size := []int{8, 19, 20, 500}[i]
		require.Equal(t, 42+size, r.Length)
		require.Equal(t, min(42+size, 61), r.CaptureLength)
	}
}

// Only what was sent stands in the capture.
func TestUnsentIsNotCaptured(t *testing.T) {
	var file bytes.Buffer
	c := Wrap(open(t, addrA), &file, Config{})
	good := transport.Tx{Data: make([]byte, 64), Dst: addrB}
	n, err := c.WriteBatch([]transport.Tx{good, {Dst: addrB}, good})
	require.ErrorIs(t, err, transport.ErrTx)
	require.Equal(t, 1, n)
	require.Len(t, readAll(t, file.Bytes()), 1)
}

// full is a disk that takes n writes.
type full struct {
	n   int
	err error
}

func (f *full) Write(b []byte) (int, error) {
	if f.n == 0 {
		return 0, f.err
	}
	f.n--
	return len(b), nil
}

// A capture that cannot be written ends; traffic does not.
func TestWriteErrorsStayOut(t *testing.T) {
	n := sim.New(sim.Config{})
	h, err := n.Host(netip.MustParseAddr("10.0.0.1"))
	require.NoError(t, err)
	broken := errors.New("disk full")
	c := Wrap(h, &full{2, broken}, Config{})
	tx := []transport.Tx{{Data: make([]byte, 64), Dst: netip.MustParseAddr("10.0.0.1")}}
	for i := range 4 {
		k, err := c.WriteBatch(tx)
		require.NoError(t, err)
		require.Equal(t, 1, k)
		require.Equal(t, i >= 1, c.Err() != nil, "write %d", i)
	}
	n.Advance(n.Now())
	k, err := c.ReadBatch(transport.NewBatch(c, 8), false)
	require.NoError(t, err)
	require.Equal(t, 4, k)
	require.ErrorIs(t, c.Close(), broken)
	require.ErrorIs(t, c.Close(), net.ErrClosed)
}

func BenchmarkWriteBatch(b *testing.B) {
	inner := open(b, addrA)
	c := Wrap(inner, io.Discard, Config{})
	batch := make([]transport.Tx, 8)
	for i := range batch {
		batch[i] = transport.Tx{Data: make([]byte, 1056), Dst: addrB}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.WriteBatch(batch); err != nil {
			b.Fatal(err)
		}
	}
}
