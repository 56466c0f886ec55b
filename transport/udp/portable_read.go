package udp

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/transport"
)

// Limits of reading on after errors.
const (
	readTries    = 32 // errors in a row, some 3 s with the pauses, that end it
	readPause    = time.Millisecond
	maxReadPause = 128 * readPause
)

// source is the socket that is read.
type source interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
}

// read moves datagrams from the socket to the queue until Close, or until the
// socket has nothing but errors.
func (c *portable) read(from source) {
	defer close(c.done)
	for failed := 0; ; {
		var buf []byte
		select {
		case buf = <-c.spare:
		default:
			buf = make([]byte, c.mtu)
		}
		n, addr, err := from.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			failed = 0
		case faultOf(err) == faultSize: // cut off, as Windows says
			c.rxTruncated.Add(1)
			c.reuse(buf)
			continue
		default: // an ICMP error, if it passes
			failed++
			if errors.Is(err, net.ErrClosed) || failed == readTries || !c.pause(failed) {
				c.err = err
				return
			}
			c.reuse(buf)
			continue
		}
		select {
		case c.arrived <- datagram{buf[:n], addr}:
		case <-c.stop:
			return
		}
	}
}

// pause waits the longer the more often reading failed, and reports whether it
// goes on.
func (c *portable) pause(failed int) bool {
	timer := time.NewTimer(min(readPause<<(failed-1), maxReadPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stop:
		return false
	}
}

// reuse gives storage back to the goroutine.
func (c *portable) reuse(buf []byte) {
	select {
	case c.spare <- buf[:cap(buf)]:
	default:
	}
}

// ended reports whether the goroutine has, and why.
func (c *portable) ended() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.err
}

// ReadBatch takes what the goroutine has read, and then tells why there is no more.
func (c *portable) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	n := 0
	ended := c.ended() // before, so that what it has read comes first
	for n < len(b) {
		if cap(b[n].Buf) == 0 {
			return n, transport.ErrNoBuffer
		}
		d, ok := c.take()
		if !ok {
			if n == 0 && ended != nil {
				return 0, ended
			}
			if n > 0 || !wait {
				break
			}
			if err := c.WaitRead(); err != nil {
				return 0, err
			}
			continue
		}
		if c.deliver(&b[n], d) {
			n++
		}
	}
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, nil
}

func (c *portable) take() (datagram, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasNext {
		c.hasNext = false
		return c.next, true
	}
	select {
	case d := <-c.arrived:
		return d, true
	default:
		return datagram{}, false
	}
}

func (c *portable) deliver(s *transport.Rx, d datagram) bool {
	defer c.reuse(d.buf)
	if len(d.buf) > cap(s.Buf) {
		c.rxTruncated.Add(1)
		return false
	}
	buf := s.Buf
	*s = transport.Rx{
		Buf: buf, Data: buf[:len(d.buf)],
		Src: d.from.Addr().Unmap().WithZone(""), SrcPort: d.from.Port(), Dst: c.addr,
	}
	copy(s.Data, d.buf)
	c.rxPackets.Add(1)
	c.rxBytes.Add(uint64(len(d.buf)))
	return true
}

// WaitRead waits for the goroutine to read something.
func (c *portable) WaitRead() error {
	for {
		c.mu.Lock()
		ready := c.hasNext
		c.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case d := <-c.arrived:
			c.keep(d)
			return nil
		case <-c.stop:
			return net.ErrClosed
		case <-c.done:
			select {
			case d := <-c.arrived:
				c.keep(d)
				return nil
			default:
				return c.ended()
			}
		}
	}
}

// keep puts a datagram that WaitRead took in front of the queue. When another
// waiter did the same, the order of two packets is lost, as on any network.
func (c *portable) keep(d datagram) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasNext {
		select {
		case c.arrived <- d:
		default: // full again: lost, as in a full socket buffer
		}
		return
	}
	c.next, c.hasNext = d, true
}

// Release does nothing: slots are the caller's own.
func (c *portable) Release([]transport.Rx) {}
