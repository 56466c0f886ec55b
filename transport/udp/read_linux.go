package udp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

const (
	rxBatch = 64 // messages a call
	// rxControl has room for traffic class and segment size, 24 bytes each, and
	// is a multiple of what the kernel aligns to.
	rxControl = 64
	// A pending socket error is taken away by the call that reports it.
	rxErrorTries = 16
)

// reader is the arrays of one ReadBatch call.
type reader struct {
	msgs  [rxBatch]mmsghdr
	iovs  [rxBatch]unix.Iovec
	names [rxBatch]unix.RawSockaddrInet6 // large enough for both families
	ctl   [rxBatch][rxControl]byte

	want  int // messages to ask for
	got   int
	errno unix.Errno
}

func newReader() *reader {
	r := &reader{}
	for i := range r.msgs {
		h := &r.msgs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov = &r.iovs[i]
		h.SetIovlen(1)
		h.Control = &r.ctl[i][0]
	}
	return r
}

// prepare takes the caller's buffers, for most messages at most.
func (r *reader) prepare(b []transport.Rx, most int) error {
	r.want = min(len(b), most)
	for i := range r.want {
		buf := b[i].Buf[:cap(b[i].Buf)]
		if len(buf) == 0 {
			return transport.ErrNoBuffer
		}
		r.iovs[i].Base = &buf[0]
		r.iovs[i].SetLen(len(buf))
		h := &r.msgs[i].hdr
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(rxControl)
		h.Flags = 0
	}
	return nil
}

// forget lets go of the caller's buffers.
func (r *reader) forget() {
	for i := range r.want {
		r.iovs[i].Base = nil
	}
	r.want = 0
}

// receive asks for messages. An error that keeps coming back though it concerns
// what was sent says as little as an empty socket.
func (r *reader) receive(fd uintptr) {
	for range rxErrorTries {
		r.got, r.errno = recvmmsg(fd, r.msgs[:r.want])
		switch r.errno {
		case 0:
			return
		case unix.EINTR, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH:
			continue // an ICMP error that concerns some packet sent
		}
		r.got = 0
		return
	}
	r.got, r.errno = 0, unix.EAGAIN
}

// ReadBatch receives what has arrived, at most 64 messages a call.
func (s *shard) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, took, err := s.read(b)
		switch {
		case err != nil:
			return 0, err
		case n > 0 || !wait:
			return n, nil
		case took:
			continue
		}
		if err := s.wait.wait(); err != nil {
			return 0, err
		}
	}
}

// failure is why nothing came, nil if there was nothing.
func (r *reader) failure() error {
	if r.errno == unix.EAGAIN {
		return nil
	}
	return r.errno
}

// received counts packets.
type received struct{ packets, bytes, trains, truncated uint64 }

func (t *received) add(n *received) {
	t.packets += n.packets
	t.bytes += n.bytes
	t.trains += n.trains
	t.truncated += n.truncated
}

// accept fills the slots of the received messages, without those that did not
// fit, and returns how many there are.
func (s *shard) accept(r *reader, b []transport.Rx) (n int, got received) {
	for i := range r.got {
		m := &r.msgs[i]
		if m.hdr.Flags&unix.MSG_TRUNC != 0 {
			got.truncated++
			continue
		}
		if i != n {
			b[i], b[n] = b[n], b[i]
		}
		x := &b[n]
		x.Data, x.Seg, x.Lease = x.Buf[:m.n], 0, 0
		x.HaveID, x.ID, x.Frag, x.TTL, x.TOS = false, 0, 0, 0, 0
		x.Dst = s.addr
		r.source(i, x)
		parseControl(r.ctl[i][:m.hdr.Controllen], x)
		p := uint64(x.Packets())
		got.packets += p
		got.bytes += uint64(m.n)
		if p > 1 {
			got.trains++
		}
		n++
	}
	return n, got
}

// source reads the sender's address, without its zone.
func (r *reader) source(i int, s *transport.Rx) {
	if r.names[i].Family == unix.AF_INET {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&r.names[i]))
		s.Src, s.SrcPort = netip.AddrFrom4(sa.Addr), portOf(&sa.Port)
		return
	}
	sa := &r.names[i]
	s.Src, s.SrcPort = netip.AddrFrom16(sa.Addr), portOf(&sa.Port)
}

// parseControl reads traffic class and segment size. The kernel wrote b, but it
// is bounded all the same.
func parseControl(b []byte, s *transport.Rx) {
	const align = unix.SizeofPtr - 1
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(b) {
			return
		}
		data := b[unix.SizeofCmsghdr:size]
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) >= 1:
			s.TOS = data[0]
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 4:
			s.TOS = uint8(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			if seg := int(binary.NativeEndian.Uint32(data)); seg > 0 && seg < len(s.Data) {
				s.Seg = seg
			}
		}
		b = b[min((size+align)&^align, len(b)):]
	}
}
