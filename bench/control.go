package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// callTimeout bounds one control request: the longest, clearing and checking a
// region of MaxRegion, takes a few seconds.
const callTimeout = 60 * time.Second

// control is the requester's end of a control connection. One goroutine uses it
// at a time.
type control struct {
	wire *wire
	// hangUp unblocks a call in progress; it may be called several times.
	hangUp func()
	// explain turns a broken connection into what broke it.
	explain func(error) error
	// note hears that the peer is busy with somebody else; nil: nobody listens.
	note func(string)
}

// call asks one question. An error of the peer's comes back as *PeerError, a
// failed verification as *MismatchError.
func (c *control) call(ctx context.Context, req *request) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(callTimeout, func() { cancel(fmt.Errorf("no answer to %q in %v", req.Do, callTimeout)) })
	defer late.Stop()
	defer context.AfterFunc(ctx, c.hangUp)()
	var resp response
	err := c.wire.send(req)
	if err == nil {
		err = c.wire.receive(&resp)
	}
	for err == nil && resp.Busy != "" && req.Do == doHello {
		late.Stop() // it takes as long as whoever is before us takes
		if c.note != nil {
			c.note(resp.Busy)
		}
		resp = response{}
		err = c.wire.receive(&resp)
	}
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if resp.Mismatch != nil {
		return nil, resp.Mismatch
	}
	if resp.Err != "" {
		return nil, &PeerError{Err: errors.New(resp.Err)}
	}
	return &resp, nil
}

// broken says why the connection does not work: this side gave up, or the peer
// is gone, or it talks nonsense.
func (c *control) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if !hungUp(err) {
		return &PeerError{Err: err}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("closed the control connection")
	}
	if c.explain != nil {
		return c.explain(err)
	}
	return &PeerError{Err: err}
}

// hungUp reports whether err is that of a connection whose other end is gone.
func hungUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
