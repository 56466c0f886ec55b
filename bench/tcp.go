package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// echoSize is the length of the answer to a message in the latency part: what
// an acknowledgement is to a WRITE.
const echoSize = 8

// wantedCongestion is the congestion control asked for: the machine's default
// may be bbr, whose pacing costs loopback TCP a third.
const wantedCongestion = "cubic"

// tuneTCP prepares a connection of the baseline and says how. Buffers are left to
// the kernel: setting them turns its tuning off, which cost up to a fifth.
func tuneTCP(c *net.TCPConn) (detail string, err error) {
	if err := c.SetNoDelay(true); err != nil {
		return "", err
	}
	detail = "Go net, one connection, one write a message, TCP_NODELAY, buffers sized by the kernel"
	if cc := setCongestion(c); cc != "" {
		detail += ", TCP_CONGESTION=" + cc
	}
	return detail, nil
}

// tcpSender is the requester's side of the TCP baseline at one size. The source
// is walked as a cell walks it.
type tcpSender struct {
	conn *net.TCPConn
	src  []byte
	lay  layout
	walk walker
}

// dialTCP connects to the peer's receiver from the local address.
func dialTCP(ctx context.Context, local, remote netip.Addr, port uint16) (*net.TCPConn, string, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)), Timeout: callTimeout}
	c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(remote, port).String())
	if err != nil {
		return nil, "", fmt.Errorf("tcp baseline: %w", err)
	}
	conn := c.(*net.TCPConn)
	detail, err := tuneTCP(conn)
	if err != nil {
		_ = conn.Close()
		return nil, "", fmt.Errorf("tcp baseline: %w", err)
	}
	return conn, detail, nil
}

// send writes messages until the time is over and at least least are out, and
// returns how many.
func (s *tcpSender) send(d time.Duration, least uint64) (uint64, error) {
	// Looking at the clock costs as much as copying a kilobyte.
	every := uint64(max(1, (64<<10)/s.lay.size))
	var n uint64
	size := s.lay.size
	for start := time.Now(); n < least || n%every != 0 || time.Since(start) < d; n++ {
		_, src := s.walk.next()
		if _, err := s.conn.Write(s.src[src : src+size]); err != nil {
			return n, fmt.Errorf("tcp baseline: %w", err)
		}
	}
	return n, nil
}

// ping sends one message at a time and waits for its answer.
func (s *tcpSender) ping(d time.Duration, least uint64, h histogram) (uint64, error) {
	var n uint64
	var got [echoSize]byte
	size := s.lay.size
	before := time.Now()
	for end := before.Add(d); n < least || before.Before(end); n++ {
		_, src := s.walk.next()
		if _, err := s.conn.Write(s.src[src : src+size]); err != nil {
			return n, fmt.Errorf("tcp baseline: %w", err)
		}
		if _, err := io.ReadFull(s.conn, got[:]); err != nil {
			return n, fmt.Errorf("tcp baseline: %w", err)
		}
		now := time.Now()
		h.add(now.Sub(before))
		before = now
	}
	return n, nil
}
