package bridge

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// wire is a port in memory: the test's end of a cable.
type wire struct {
	in, out chan []byte
	once    sync.Once
	gone    chan struct{}
}

func newWire() *wire {
	return &wire{in: make(chan []byte), out: make(chan []byte, 2*queueLen), gone: make(chan struct{})}
}

func (w *wire) Read(b []byte) (int, error) {
	select {
	case f := <-w.in:
		return copy(b, f), nil
	case <-w.gone:
		return 0, io.EOF
	}
}

func (w *wire) Write(b []byte) (int, error) {
	w.out <- bytes.Clone(b)
	return len(b), nil
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.gone) })
	return nil
}

// plug makes a switch with the named ports.
func plug(t *testing.T, names ...string) (*Switch, []*wire) {
	s := New()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var wires []*wire
	for _, n := range names {
		w := newWire()
		require.NoError(t, s.Attach(n, w))
		wires = append(wires, w)
	}
	return s, wires
}

// settle waits until all that was put in by w has been handled.
func settle(w *wire) {
	w.in <- make([]byte, macLen) // too short to count, but taken in turn
	w.in <- make([]byte, macLen)
}

func mac(n byte) []byte { return []byte{2, 0, 0, 0, 0, n} }

func frame(dst, src []byte, ether uint16, payload []byte) []byte {
	f := append(append([]byte(nil), dst...), src...)
	return append(binary.BigEndian.AppendUint16(f, ether), payload...)
}

// packet is a sealed frame from host 1 to host 2 with psn as its number.
func packet(op roce.Opcode, psn roce.PSN, six bool) []byte {
	h := roce.Headers{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000, DstPort: roce.Port, Frag: 0x4000}
	if six {
		h.Src, h.Dst = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	}
	p := roce.Packet{Opcode: op, PKey: 0xffff, DestQP: 5, PSN: psn}
	if op == roce.OpSendOnly {
		p.Payload = []byte("what is sent")
	}
	b := p.Append(nil)
	h.Seal(b)
	udp := roce.UDP{SrcPort: h.SrcPort, DstPort: h.DstPort, Len: uint16(8 + len(b))}
	segment := append(udp.Append(nil), b...)
	if six {
		binary.BigEndian.PutUint16(segment[6:], roce.UDPChecksum(h.Src, h.Dst, segment))
		ip := roce.IPv6{PayloadLen: uint16(len(segment)), NextHeader: 17, HopLimit: 64, Src: h.Src, Dst: h.Dst}
		return frame(mac(2), mac(1), 0x86dd, append(ip.Append(nil), segment...))
	}
	ip := roce.IPv4{TotalLen: uint16(20 + len(segment)), Frag: h.Frag, TTL: 64, Protocol: 17, Src: h.Src, Dst: h.Dst}
	return frame(mac(2), mac(1), 0x0800, append(ip.Append(nil), segment...))
}

// psn reads a frame's number back.
func psn(t *testing.T, b []byte) roce.PSN {
	var v view
	require.True(t, v.look(b))
	require.True(t, v.whole)
	return v.packet.PSN
}

// arrivals empties a wire of what has come by it and returns the numbers. The
// marker frame tells where to stop.
func arrivals(t *testing.T, from, to *wire) []roce.PSN {
	marker := frame(mac(2), mac(1), 0x88b5, []byte("marker"))
	settle(from)
	from.in <- marker
	var got []roce.PSN
	for {
		f := <-to.out
		if bytes.Equal(f, marker) {
			return got
		}
		got = append(got, psn(t, f))
	}
}
