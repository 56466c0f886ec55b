package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gohixl/hixl"
)

// Serve is the passive end of one case, whose active end connects to l next.
func Serve(ctx context.Context, nic *hixl.NIC, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	conn, err := l.Accept()
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("verbs: %w", err))
	}
	stop()
	in := newLines(ctx, conn)
	defer in.close()
	line, err := in.get()
	if err != nil {
		return err
	}
	text, ok := strings.CutPrefix(line, "case")
	if !ok {
		return fmt.Errorf("%w: %q", ErrCase, line)
	}
	c, err := Parse(text)
	if err != nil {
		return err
	}
	e, err := newEndpoint(nic, &c, false)
	if err != nil {
		return err
	}
	return errors.Join(e.serve(ctx, in), e.close())
}

func (e *endpoint) serve(ctx context.Context, l *lines) error {
	posted := e.c.Receives() && e.c.RecvDelay == 0
	if posted {
		if err := e.postReceives(); err != nil {
			return err
		}
	}
	if err := l.exchange(e, true); err != nil {
		return err
	}
	if err := e.connect(); err != nil {
		return err
	}
	if err := l.tell("ready"); err != nil {
		return err
	}
	if e.c.Receives() && !posted {
		time.AfterFunc(time.Duration(e.c.RecvDelay)*time.Millisecond, func() {
			_ = e.postReceives() // the connection may have ended meanwhile
		})
	}
	if err := e.collect(ctx, l); err != nil {
		return err
	}
	if err := l.tell("slots %s", e.slots()); err != nil {
		return err
	}
	return l.tell("bye")
}

// collect tells of completions until the active end is done, and then until
// nothing is to be expected any more.
func (e *endpoint) collect(ctx context.Context, l *lines) error {
	quiet, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := time.Duration(e.c.Patience) * time.Millisecond
	said, timer := make(chan error, 1), make(chan *time.Timer, 1)
	go func() {
		err := l.expect("done")
		said <- err
		// When all is acknowledged nothing is under way, else it may be.
		if err != nil || e.c.QP == "rc" && !e.c.Receives() {
			cancel()
			return
		}
		timer <- time.AfterFunc(patience, cancel)
	}()
	for range e.c.Count {
		w, err := e.completion(quiet)
		if err != nil {
			break
		}
		if err := l.tell("%s", w.String()); err != nil {
			return err
		}
		select {
		case t := <-timer:
			t.Reset(patience)
			timer <- t
		default:
		}
	}
	return <-said
}
