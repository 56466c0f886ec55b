package xdp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// Other traffic of the link, a lot of it, disturbs neither the kernel's own
// connections nor ours: UDP to other ports, datagrams in fragments, junk to port
// 4791 of our address and of others.
func TestFlood(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.ModeNative, xdp.ModeGeneric} {
		t.Run(mode.String(), func(t *testing.T) {
			p := lab(t, veth.Config{})
			a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{Mode: mode}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{Mode: mode})
			x, y := joined(t, a, b)
			require.NoError(t, x.transfer(64))

			var stop atomic.Bool
			var floods sync.WaitGroup
			defer floods.Wait()
			defer stop.Store(true)
			var sent atomic.Uint64
			for _, size := range []int{20, 700, 4000} { // the last in fragments
				for _, port := range []int{9, 4791} {
					flood(t, p, &floods, &stop, &sent, port, size)
				}
			}
			tcp(t, p, 8<<20)
			for range 3 {
				allSizes(t, x, y)
			}
			tcp(t, p, 8<<20)
			require.Eventually(t, func() bool { return sent.Load() > 1000 }, patience, time.Millisecond)
			stop.Store(true)
			floods.Wait()
			require.NoError(t, x.nic.Close())
		})
	}
}

// flood sends datagrams from end 1 to a port of end 0, until it is stopped.
func flood(t *testing.T, p *veth.Pair, group *sync.WaitGroup, stop *atomic.Bool, sent *atomic.Uint64, port, size int) {
	t.Helper()
	var conn *net.UDPConn
	require.NoError(t, p.Do(1, func() (err error) {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: veth.Addrs4[1].AsSlice()})
		return err
	}))
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(veth.Addrs4[0], uint16(port)))
	group.Go(func() {
		defer func() { _ = conn.Close() }()
		b := make([]byte, size)
		for i := 0; !stop.Load(); i++ {
			b[i%size]++
			_, _ = conn.WriteTo(b, to)
			sent.Add(1)
			if i%16 == 0 {
				time.Sleep(100 * time.Microsecond) // the test is about wrong deliveries, not about who is faster
			}
		}
	})
}

// tcp moves n bytes from end 0 to end 1 over a connection of the kernel's.
func tcp(t *testing.T, p *veth.Pair, n int) {
	t.Helper()
	var ln net.Listener
	require.NoError(t, p.Do(1, func() (err error) {
		ln, err = net.Listen("tcp4", netip.AddrPortFrom(veth.Addrs4[1], 4791).String()) // even with our number
		return err
	}))
	defer ln.Close()
	var out net.Conn
	require.NoError(t, p.Do(0, func() (err error) {
		out, err = net.Dial("tcp4", ln.Addr().String())
		return err
	}))
	in, err := ln.Accept()
	require.NoError(t, err)
	defer in.Close()
	data := bytes.Repeat([]byte("kernel "), n/7)
	go func() {
		_, _ = out.Write(data)
		_ = out.Close()
	}()
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// A single bit that turns on the way is noticed, wherever it lies in the frame, but
// for the bits that nothing covers.
func TestEveryBitOnTheWire(t *testing.T) {
	p := lab(t, veth.Config{})
	c := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	fd, frame := wire(t, p)
	slots := transport.NewBatch(c, 16)
	// deliver reports whether the frame, and not only the one behind it, came through.
	deliver := func(b []byte) (ok bool) {
		_, err := unix.Write(fd, b)
		require.NoError(t, err)
		_, err = unix.Write(fd, marker(t, p))
		require.NoError(t, err)
		for {
			n, err := c.ReadBatch(slots, true)
			require.NoError(t, err)
			for i := range slots[:n] {
				rx := &slots[i]
				if rx.SrcPort == markerPort {
					return ok
				}
				h := roce.Headers{Src: rx.Src, Dst: rx.Dst, SrcPort: rx.SrcPort, DstPort: roce.Port, ID: rx.ID, Frag: rx.Frag}
				ok = ok || rx.HaveID && h.Check(rx.Data)
			}
		}
	}
	require.True(t, deliver(frame), "the frame is right as it is")
	var got, want []int
	for bit := range 8 * len(frame) {
		frame[bit/8] ^= 0x80 >> (bit % 8)
		if deliver(frame) {
			got = append(got, bit)
		}
		frame[bit/8] ^= 0x80 >> (bit % 8)
	}
	for _, r := range [][2]int{{6 * 8, 48}, {(14 + 20 + 6) * 8, 16}, {(14 + 20 + 8 + 4) * 8, 8}} { // sender's address, UDP checksum, masked bits of the BTH
		for i := range r[1] {
			want = append(want, r[0]+i)
		}
	}
	require.Equal(t, want, got)
}

const markerPort = 0xf123

// wire opens a packet socket at end 1 that writes frames, and makes a good one.
func wire(t *testing.T, p *veth.Pair) (fd int, frame []byte) {
	t.Helper()
	require.NoError(t, p.Do(1, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	t.Cleanup(func() { _ = unix.Close(fd) })
	l, err := p.Handle(1).LinkByName(veth.Links[1])
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index}))
	return fd, roceFrame(t, p, 0xc001, 64)
}

// marker is a frame that says that what was sent before it has arrived.
func marker(t *testing.T, p *veth.Pair) []byte {
	t.Helper()
	return roceFrame(t, p, markerPort, 0)
}

// roceFrame is a sealed SEND from end 1 to end 0.
func roceFrame(t *testing.T, p *veth.Pair, port uint16, payload int) []byte {
	t.Helper()
	var macs [2][]byte
	for i := range macs {
		l, err := p.Handle(i).LinkByName(veth.Links[i])
		require.NoError(t, err)
		macs[i] = l.Attrs().HardwareAddr
	}
	pkt := roce.Packet{Opcode: roce.OpSendOnly, PKey: 0xffff, DestQP: 77, PSN: 5}
	pkt.SetPayload(bytes.Repeat([]byte{0xa5}, payload))
	h := roce.Headers{Src: veth.Addrs4[1], Dst: veth.Addrs4[0], SrcPort: port, DstPort: roce.Port, Frag: roce.DontFragment}
	b := append(append(append([]byte(nil), macs[0]...), macs[1]...), 8, 0)
	n := pkt.Len()
	ip := roce.IPv4{TotalLen: uint16(28 + n), Frag: roce.DontFragment, TTL: 64, Protocol: 17, Src: h.Src, Dst: h.Dst}
	b = ip.Append(b)
	u := roce.UDP{SrcPort: port, DstPort: roce.Port, Len: uint16(8 + n)}
	b = pkt.Append(u.Append(b))
	b = append(b, make([]byte, 14+28+n-len(b))...)
	h.Seal(b[len(b)-n:])
	return b
}

// Frames with VLAN tags are understood, on a link that has none.
func TestTaggedFrames(t *testing.T) {
	p := lab(t, veth.Config{})
	c := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	fd, frame := wire(t, p)
	slots := transport.NewBatch(c, 4)
	for _, tags := range [][]byte{nil, {0x81, 0, 0, 0}, {0x81, 0, 0, 77}, {0x88, 0xa8, 0, 5, 0x81, 0, 0, 77}} {
		t.Run(fmt.Sprintf("%x", tags), func(t *testing.T) {
			_, err := unix.Write(fd, append(append(append([]byte(nil), frame[:12]...), tags...), frame[12:]...))
			require.NoError(t, err)
			n, err := c.ReadBatch(slots, true)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, frame[14+28:], slots[0].Data)
			require.Equal(t, veth.Addrs4[1], slots[0].Src)
		})
	}
}
