package engine

import (
	"context"
	"fmt"

	"github.com/gohixl/hixl"
)

// TransferSync copies all pieces and returns when all are there. When ctx ends first
// the transfer is given up and the error is [StatusTimeout]; it unwraps to
// [hixl.ErrUnfenced] if bytes may still land, for which [Engine.Disconnect] waits. After
// StatusTimeout and [StatusFailed] the link cannot be used until it is made anew.
// [StatusParamInvalid] means that nothing was sent: a piece is no part of a region
// registered on either side, or empty.
func (e *Engine) TransferSync(ctx context.Context, remote string, op TransferOp, descs []TransferOpDesc) error {
	return fail("TransferSync", remote, e.transferSync(ctx, remote, op, descs))
}

func (e *Engine) transferSync(ctx context.Context, remote string, op TransferOp, descs []TransferOpDesc) error {
	if err := checkTransfer(op, descs); err != nil {
		return err
	}
	l, p, err := e.use(ctx, remote)
	if err != nil {
		return err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	return e.latch(l, e.move(ctx, l, p, op, descs))
}

// move does a synchronous transfer.
func (e *Engine) move(ctx context.Context, l *link, p *hixl.Peer, op TransferOp, descs []TransferOpDesc) error {
	direct, relayed, err := e.resolve(ctx, l, p, descs)
	if err != nil {
		return err
	}
	if len(relayed) > 0 && e.opts.Buffers == 0 {
		return invalid("piece %d is no part of a registered region, and option %s is 0:0", relayed[0].index, OptionBufferPool)
	}
	if len(direct) > 0 {
		if err := p.Do(ctx, &hixl.Transfer{Op: direction(op), Descs: direct}); err != nil {
			return err
		}
	}
	for i := range relayed {
		if err := e.relay.move(ctx, p, op, &relayed[i]); err != nil {
			return err
		}
	}
	return nil
}

func direction(op TransferOp) hixl.TransferOp {
	if op == Write {
		return hixl.Write
	}
	return hixl.Read
}

// checkTransfer finds the mistakes that can be seen.
func checkTransfer(op TransferOp, descs []TransferOpDesc) error {
	if op != Read && op != Write {
		return invalid("%v, allowed: READ (0), WRITE (1)", op)
	}
	if len(descs) == 0 {
		return invalid("no pieces")
	}
	for i := range descs {
		d := &descs[i]
		switch addr, n := d.span(); {
		case d.Local != nil && (d.LocalAddr != 0 || d.Len != 0 && d.Len != n):
			return invalid("piece %d: its local memory is given by Local or by LocalAddr and Len, not both", i)
		case n == 0 || addr == 0 || d.RemoteAddr == 0:
			return invalid("piece %d: %d bytes between %#x and %#x", i, n, addr, d.RemoteAddr)
		case addr+n < addr || uint64(d.RemoteAddr)+n < n:
			return invalid("piece %d: %d bytes between %#x and %#x go beyond the end of all addresses", i, n, addr, d.RemoteAddr)
		}
	}
	return nil
}

// relayedPiece is a piece whose local memory is not registered.
type relayedPiece struct {
	index  int
	local  []byte
	remote *hixl.RemoteRegion
	off    uint64
}

// resolve finds the regions of all pieces.
func (e *Engine) resolve(ctx context.Context, l *link, p *hixl.Peer, descs []TransferOpDesc) ([]hixl.Desc, []relayedPiece, error) {
	direct := make([]hixl.Desc, 0, len(descs))
	var relayed []relayedPiece
	for i := range descs {
		d := &descs[i]
		addr, n := d.span()
		h, off, ok := e.findLocal(addr, n)
		if !ok && d.Local == nil {
			return nil, nil, invalid("piece %d: no region registered here holds %d bytes at %#x; register it, or give it as Local", i, n, addr)
		}
		r, far, err := l.view.find(ctx, e.c, p, uint64(d.RemoteAddr), n)
		if err != nil {
			return nil, nil, &StatusError{Status: classify(err), Err: fmt.Errorf("piece %d: %w", i, err)}
		}
		if ok {
			direct = append(direct, hixl.Desc{Local: h.region, LocalOff: off, Remote: r, RemoteOff: far, Len: n})
		} else {
			relayed = append(relayed, relayedPiece{i, d.Local, r, far})
		}
	}
	return direct, relayed, nil
}

// findLocal returns the registered region that holds n bytes at addr.
func (e *Engine) findLocal(addr, n uint64) (*MemHandle, uint64, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.local.find(addr, n)
}
