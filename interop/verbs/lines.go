package verbs

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/gohixl/hixl"
)

// SentFormat is the line in which our end as a program says what its NIC sent:
// packets, and trains of them.
const SentFormat = "sent packets=%d trains=%d"

// Port is the TCP port of the exchange.
const Port = "7801"

// lines is the connection to the other end.
type lines struct {
	conn net.Conn
	r    *bufio.Reader
	stop func() bool
}

func newLines(ctx context.Context, conn net.Conn) *lines {
	l := &lines{conn: conn, r: bufio.NewReader(conn)}
	l.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return l
}

func (l *lines) close() {
	l.stop()
	_ = l.conn.Close() // all that matters was read
}

func (l *lines) get() (string, error) {
	b, err := l.r.ReadSlice('\n') // as long as the buffer at most
	if err != nil {
		return "", fmt.Errorf("verbs: from the other end: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// expect gets one line, which must be this one.
func (l *lines) expect(want string) error {
	got, err := l.get()
	if err == nil && got != want {
		err = fmt.Errorf("verbs: the other end says %q instead of %q", got, want)
	}
	return err
}

func (l *lines) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(l.conn, format+"\n", args...)
	return err
}

// end is what the ends tell of each other.
type end struct {
	qpn, psn, rkey uint32
	addr           uint64
	gid            netip.Addr
}

func (e *end) String() string {
	gid := e.gid.As16()
	return fmt.Sprintf("end qpn=%x psn=%x gid=%s addr=%x rkey=%x", e.qpn, e.psn, hex.EncodeToString(gid[:]), e.addr, e.rkey)
}

func parseEnd(line string) (e end, err error) {
	var gid string
	_, err = fmt.Sscanf(line, "end qpn=%x psn=%x gid=%s addr=%x rkey=%x", &e.qpn, &e.psn, &gid, &e.addr, &e.rkey)
	if err != nil {
		return e, fmt.Errorf("verbs: not an end: %q: %w", line, err)
	}
	b, err := hex.DecodeString(gid)
	if err != nil || len(b) != 16 {
		return e, fmt.Errorf("verbs: not a GID: %q", gid)
	}
	e.gid = netip.AddrFrom16([16]byte(b)).Unmap()
	return e, nil
}

// exchange trades ends.
func (l *lines) exchange(e *endpoint, first bool) error {
	mine := e.end()
	if first {
		if err := l.tell("%s", mine.String()); err != nil {
			return err
		}
	}
	line, err := l.get()
	if err != nil {
		return err
	}
	if !first {
		if err := l.tell("%s", mine.String()); err != nil {
			return err
		}
	}
	e.peer, err = parseEnd(line)
	return err
}

// address is the peer's queue pair.
func (e *endpoint) address() hixl.Address {
	return hixl.Address{Addr: e.peer.gid, QPN: hixl.QPN(e.peer.qpn), PSN: hixl.PSN(e.peer.psn), MTU: e.c.MTU, MaxReads: e.c.Reads}
}
