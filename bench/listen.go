package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Listen serves requesters that connect to the TCP address listen, one at a
// time, until ctx ends. local is the RoCE address; unset, each session uses the
// one that its control connection came to. note, if not nil, hears of sessions.
// There is no authentication: it is for networks where everybody may measure.
func Listen(ctx context.Context, listen string, local netip.Addr, note func(string)) error {
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
	note(fmt.Sprintf("listening on %v", ln.Addr()))
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bench: listening for requesters: %w", err)
		}
		note(fmt.Sprintf("session from %v", conn.RemoteAddr()))
		if err := serveConn(ctx, conn, local); err != nil && ctx.Err() == nil {
			note(err.Error())
		}
	}
}

// serveConn serves one session.
func serveConn(ctx context.Context, conn net.Conn, local netip.Addr) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if !local.IsValid() {
		local = conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	}
	err := ServePeer(ctx, conn, conn, local)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
