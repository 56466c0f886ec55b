package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// tcpRead is the most that is read at once: more delays the window updates that
// keep the sender going.
const tcpRead = 1 << 20

// tcpReadAhead is the buffer for messages that do not lie end to end.
const tcpReadAhead = 64 << 10

// tcpReceiver is the responder's side of the TCP baseline at one size: it reads
// into the destination, walking it as a cell's messages do. It owns one
// goroutine, which close ends.
type tcpReceiver struct {
	lay layout
	dst []byte
	ln  *net.TCPListener

	echo     atomic.Bool   // answer each message; changed while nothing is in flight
	messages atomic.Uint64 // whole messages so far
	wanted   atomic.Uint64 // what take waits for, 0 when nobody does
	reached  chan struct{} // capacity 1: wanted was reached
	ended    chan struct{} // closed when the goroutine has left
	err      error         // why it left; read after ended

	mu     sync.Mutex
	conn   *net.TCPConn // guarded by mu
	closed bool         // guarded by mu
}

// listenTCP starts a receiver that waits for its one connection.
func listenTCP(local netip.Addr, size int, dst []byte) (*tcpReceiver, error) {
	lay, err := newLayout(len(dst), size, 1)
	if err != nil {
		return nil, err
	}
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		return nil, fmt.Errorf("tcp baseline: %w", err)
	}
	r := &tcpReceiver{lay: lay, dst: dst, ln: ln, reached: make(chan struct{}, 1), ended: make(chan struct{})}
	go r.run()
	return r, nil
}

func (r *tcpReceiver) port() uint16 { return r.ln.Addr().(*net.TCPAddr).AddrPort().Port() }

func (r *tcpReceiver) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	r.closed = true
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.mu.Unlock()
	<-r.ended
}

func (r *tcpReceiver) run() {
	defer close(r.ended)
	r.err = fmt.Errorf("tcp baseline: receiving: %w", r.serve())
}

// adopt makes conn the one that close closes.
func (r *tcpReceiver) adopt(conn *net.TCPConn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	r.conn = conn
	return nil
}

func (r *tcpReceiver) serve() error {
	conn, err := r.ln.AcceptTCP()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := r.adopt(conn); err != nil {
		return err
	}
	if _, err := tuneTCP(conn); err != nil {
		return err
	}
	if r.lay.stride == r.lay.size {
		return r.stream(conn)
	}
	return r.scatter(conn)
}

// stream reads messages that lie end to end, as much at a time as there is.
func (r *tcpReceiver) stream(conn *net.TCPConn) error {
	end := r.lay.used()
	for at, total := 0, uint64(0); ; {
		n, err := conn.Read(r.dst[at:min(at+tcpRead, end)])
		if at += n; at == end {
			at = 0
		}
		total += uint64(n)
		if err := errors.Join(r.arrived(conn, total/uint64(r.lay.size)), err); err != nil {
			return err
		}
	}
}

// scatter reads messages with gaps between them through a buffer.
func (r *tcpReceiver) scatter(conn *net.TCPConn) error {
	in := bufio.NewReaderSize(conn, tcpReadAhead)
	w := r.lay.walk(0)
	for {
		dst, _ := w.next()
		if _, err := io.ReadFull(in, r.dst[dst:dst+r.lay.size]); err != nil {
			return err
		}
		if err := r.arrived(conn, w.n); err != nil {
			return err
		}
	}
}

// arrived publishes the number of messages so far, and answers new ones when
// that is asked for.
func (r *tcpReceiver) arrived(conn *net.TCPConn, n uint64) error {
	before := r.messages.Swap(n)
	if r.echo.Load() {
		for ; before < n; before++ {
			if _, err := conn.Write(answer[:]); err != nil {
				return err
			}
		}
	}
	if want := r.wanted.Load(); want != 0 && n >= want {
		select {
		case r.reached <- struct{}{}:
		default:
		}
	}
	return nil
}

// answer is what the latency part's messages are answered with: as short as an
// acknowledgement.
var answer [echoSize]byte

// take waits until count messages have arrived since the connection began.
func (r *tcpReceiver) take(ctx context.Context, count uint64) error {
	r.wanted.Store(count)
	defer r.wanted.Store(0)
	for {
		switch n := r.messages.Load(); {
		case n == count:
			return nil
		case n > count:
			return fmt.Errorf("tcp baseline: %d messages arrived, %d were sent", n, count)
		}
		select {
		case <-r.reached: // possibly for an earlier take: look again
		case <-r.ended:
			if r.messages.Load() != count {
				return r.err
			}
		case <-ctx.Done():
			return fmt.Errorf("tcp baseline: %d of %d messages arrived: %w", r.messages.Load(), count, context.Cause(ctx))
		}
	}
}
