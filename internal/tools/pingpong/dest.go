package pingpong

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// dest is one end as the exchange names it.
type dest struct {
	qpn hixl.QPN
	psn hixl.PSN
	gid [16]byte
}

// destLen is the length of its line, NUL included.
const destLen = len("0000:000000:000000:00000000000000000000000000000000") + 1

var done = []byte("done\x00")

func (d *dest) line() []byte {
	return append(fmt.Appendf(make([]byte, 0, destLen), "%04x:%06x:%06x:%x", 0, d.qpn, d.psn, d.gid), 0)
}

// parseDest reads a line of exactly destLen bytes.
func parseDest(b []byte) (d dest, err error) {
	text, nul := bytes.CutSuffix(b, []byte{0})
	f := bytes.Split(text, []byte(":"))
	if len(b) != destLen || !nul || len(f) != 4 || len(f[0]) != 4 || len(f[1]) != 6 || len(f[2]) != 6 || len(f[3]) != 32 {
		return d, fmt.Errorf("%q is no line of the form LID:QPN:PSN:GID with 4, 6, 6 and 32 hex digits", b)
	}
	_, err1 := strconv.ParseUint(string(f[0]), 16, 16)
	qpn, err2 := strconv.ParseUint(string(f[1]), 16, 24)
	psn, err3 := strconv.ParseUint(string(f[2]), 16, 24)
	_, err4 := hex.Decode(d.gid[:], f[3])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return d, fmt.Errorf("%q: %w", b, err)
	}
	d.qpn, d.psn = hixl.QPN(qpn), hixl.PSN(psn)
	return d, nil
}

func (d *dest) String() string {
	return fmt.Sprintf("LID 0x0000, QPN 0x%06x, PSN 0x%06x, GID %s", uint32(d.qpn), uint32(d.psn), gidText(d.gid))
}

// gidText prints as inet_ntop does.
func gidText(g [16]byte) string { return netip.AddrFrom16(g).String() }

// exchange swaps lines with the peer as the client or the server does. A server
// connects its queue pair in between, before the client can learn where it is.
func exchange(ctx context.Context, c *tools.Conn, client bool, mine dest, connect func(dest) error) (dest, error) {
	if client {
		if err := c.Send(ctx, "our address", mine.line()); err != nil {
			return dest{}, err
		}
	}
	b := make([]byte, destLen)
	if err := c.Receive(ctx, "its address", b); err != nil {
		return dest{}, err
	}
	theirs, err := parseDest(b)
	if err != nil {
		return dest{}, &tools.ExchangeError{Peer: c.Peer(), Step: "its address", Problem: "not understood", Err: err}
	}
	if client {
		if err := c.Send(ctx, "that we are done", done); err != nil {
			return dest{}, err
		}
		return theirs, connect(theirs)
	}
	if err := connect(theirs); err != nil {
		return dest{}, err
	}
	if err := c.Send(ctx, "our address", mine.line()); err != nil {
		return dest{}, err
	}
	end := make([]byte, len(done))
	if err := c.Receive(ctx, "that it is done", end); err != nil {
		return dest{}, err
	}
	if !bytes.Equal(end, done) {
		return dest{}, &tools.ExchangeError{Peer: c.Peer(), Step: "that it is done", Problem: fmt.Sprintf("got %q, not %q", end, done)}
	}
	return theirs, nil
}
