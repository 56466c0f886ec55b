package hixl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// exchangeTag begins the line that each side of an exchange sends; it names the
// version.
const exchangeTag = "hixl-exchange/1 "

// maxExchangeLine bounds the line that the other side may send.
const maxExchangeLine = 200

// ExchangeError says why addresses could not be exchanged. It unwraps to the
// reason: a network error, the context's, or [ErrAddress].
type ExchangeError struct {
	Peer    string // the other end of the connection
	Problem string
	Err     error
}

func (e *ExchangeError) Error() string {
	return fmt.Sprintf("hixl: exchanging addresses with %s: %s: %v", e.Peer, e.Problem, e.Err)
}

// Unwrap returns the reason.
func (e *ExchangeError) Unwrap() error { return e.Err }

// ExchangeTCP gives local to the other end of conn and returns what that one
// gave. Both ends call it, in any order; each sends one line and reads no byte
// more than the other's, so conn may be used for anything before and after. It is
// not closed, and has no deadline afterwards. ctx bounds how long it takes. The
// error is an *[ExchangeError].
func ExchangeTCP(ctx context.Context, conn net.Conn, local Address) (Address, error) {
	fail := func(problem string, err error) (Address, error) {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return Address{}, &ExchangeError{Peer: peerOf(conn), Problem: problem, Err: err}
	}
	text, err := local.MarshalText()
	if err != nil {
		return fail("the local address", err)
	}
	if err := ctx.Err(); err != nil {
		return fail("not begun", err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0))
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
		}
		_ = conn.SetDeadline(time.Time{})
	}()
	sent := make(chan error, 1)
	go func() { // a connection without buffers blocks until the other end reads
		_, err := conn.Write(append(append([]byte(exchangeTag), text...), '\n'))
		sent <- err
	}()
	line, readErr := readLine(conn)
	if readErr != nil {
		_ = conn.SetDeadline(time.Unix(1, 0)) // the write need not wait either
	}
	if err := <-sent; err != nil && readErr == nil {
		return fail("sending", err)
	}
	if readErr != nil {
		return fail("receiving", readErr)
	}
	rest, ok := strings.CutPrefix(line, exchangeTag)
	if !ok {
		return fail("receiving", &AddressError{Input: line, Problem: fmt.Sprintf("a line that begins with %q was expected: is a hixl of this version at the other end?", exchangeTag)})
	}
	remote, err := ParseAddress(rest)
	if err != nil {
		return fail("receiving", err)
	}
	return remote, nil
}

func peerOf(conn net.Conn) string {
	if a := conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return "an unknown peer"
}

// readLine reads up to a line feed, byte by byte: what follows belongs to others.
func readLine(conn net.Conn) (string, error) {
	line := make([]byte, 0, maxExchangeLine)
	for b := make([]byte, 1); ; {
		if _, err := conn.Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		if len(line) == maxExchangeLine {
			return "", &AddressError{Input: string(line), Problem: fmt.Sprintf("more than %d bytes without a line feed: is a hixl at the other end?", maxExchangeLine)}
		}
		line = append(line, b[0])
	}
}
