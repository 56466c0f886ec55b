package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl/roce"
)

// maxWaiting is how many requesters wait for their turn; further ones are sent
// away.
const maxWaiting = 16

// Listen serves requesters that connect to the TCP address listen, one at a
// time, until ctx ends; others are told that they wait. local is the RoCE
// address; unset, each session uses the one that its control connection came to.
// note, if not nil, hears where it listens and of each session's begin and
// result, a line each, from one goroutine at a time. There is no authentication:
// it is for networks where everybody may measure.
func Listen(ctx context.Context, listen string, local netip.Addr, note func(string)) error {
	return Opener(nil).Listen(ctx, listen, local, note)
}

// Listen is [Listen] on another carrier.
func (o Opener) Listen(ctx context.Context, listen string, local netip.Addr, note func(string)) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("bench: listening for requesters: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	defer ln.Close()
	if note == nil {
		note = func(string) {}
	}
	s := &server{carrier: o, local: local, note: note, turns: make(chan net.Conn, maxWaiting)}
	note(fmt.Sprintf("listening on %v (TCP), RoCE address %s, UDP port %d", ln.Addr(), s.where(), roce.Port))
	go s.accept(ln)
	for conn := range s.turns { // to its end, so that nobody is left waiting
		s.session(ctx, conn)
		s.here.Add(-1)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("bench: listening for requesters: %w", s.err)
}

// server is a Listen.
type server struct {
	carrier Opener
	local   netip.Addr
	note    func(string)
	turns   chan net.Conn // requesters in their order; closed when no more come
	here    atomic.Int32  // requesters served or waiting
	err     error         // why no more come; read after turns is closed
}

// where says what RoCE address sessions use.
func (s *server) where() string {
	if s.local.IsValid() {
		return s.local.String()
	}
	return "the one that a requester's connection comes to"
}

// accept lets requesters in until the listener is closed.
func (s *server) accept(ln net.Listener) {
	defer close(s.turns)
	for {
		conn, err := ln.Accept()
		if err != nil {
			s.err = err
			return
		}
		ahead := s.here.Add(1) - 1
		w := newWire(conn, conn)
		if ahead > maxWaiting {
			s.here.Add(-1)
			_ = w.send(&response{Err: fmt.Sprintf("this peer serves one requester at a time, and %d are before this one: try again later", ahead)})
			_ = conn.Close()
			continue
		}
		if ahead > 0 { // who left already is found out when it is their turn
			_ = w.send(&response{Busy: fmt.Sprintf("waiting: the peer serves one requester at a time, and %d came before this one", ahead)})
		}
		s.turns <- conn
	}
}

// session serves one requester and tells about it.
func (s *server) session(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	if ctx.Err() != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	local := s.local
	if !local.IsValid() {
		local = conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	}
	who := fmt.Sprintf("session from %v at RoCE address %v", conn.RemoteAddr(), local)
	s.note(who + ": begins")
	start := time.Now()
	p := newPeer(local)
	p.carrier = s.carrier
	err := p.serve(ctx, newWire(conn, conn))
	result := p.tally.result(err, len(p.cells))
	if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
		result = "ended here, interrupted"
	}
	if p.tally.from.IsValid() {
		who += fmt.Sprintf(" with %v", p.tally.from)
	}
	p.close()
	s.note(fmt.Sprintf("%s: %s, %v", who, result, time.Since(start).Round(time.Millisecond)))
}
