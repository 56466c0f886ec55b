package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Client reaches an agent. It holds no connection between calls.
type Client struct {
	// Dial connects to the agent.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Dial returns a client of the agent at a TCP address.
func Dial(address string) *Client {
	return &Client{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}}
}

// Result is how a command ended.
type Result struct {
	Command        string
	Stdout, Stderr string
	Exit           int // status, or 128 and the signal
}

// ExitError says that a command ended with a status other than 0.
type ExitError struct{ Result }

func (e *ExitError) Error() string {
	return fmt.Sprintf("agent: %q: exit status %d: %s", e.Command, e.Exit, tail(e.Stderr+e.Stdout))
}

// tail is the end of an output, short enough for an error.
func tail(s string) string {
	const most = 400
	s = strings.TrimSpace(s)
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return s
}

// Process is a command that runs at the agent.
type Process struct {
	command string
	conn    net.Conn
	stop    func() bool // ends the watch on the context
	done    chan struct{}

	mu       sync.Mutex
	out, err bytes.Buffer // guarded by mu
	exit     int          // these two after done
	fail     error
}

// Start runs a shell command and returns while it runs. When ctx ends, it is
// killed.
func (c *Client) Start(ctx context.Context, command string) (*Process, error) {
	conn, err := c.ask(ctx, request{Command: command})
	if err != nil {
		return nil, err
	}
	p := &Process{command: command, conn: conn, done: make(chan struct{})}
	p.stop = context.AfterFunc(ctx, p.Kill)
	go p.receive(ctx)
	return p, nil
}

// Run runs a shell command to its end. The error is an *[ExitError] when it
// failed.
func (c *Client) Run(ctx context.Context, command string) (Result, error) {
	p, err := c.Start(ctx, command)
	if err != nil {
		return Result{Command: command}, err
	}
	return p.Wait()
}

// Put stores size bytes of r as a file with the permissions of mode.
func (c *Client) Put(ctx context.Context, path string, mode uint32, size int64, r io.Reader) error {
	conn, err := c.ask(ctx, request{Path: path, Mode: mode, Size: size})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.CopyN(conn, r, size); err != nil {
		return fmt.Errorf("agent: sending %s: %w", path, err)
	}
	kind, b, err := readFrame(conn)
	switch {
	case err != nil:
		return fmt.Errorf("agent: storing %s: %w", path, err)
	case kind != kindExit:
		return fmt.Errorf("agent: storing %s: %s", path, b)
	}
	return nil
}

// ask connects and sends the request.
func (c *Client) ask(ctx context.Context, q request) (net.Conn, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	line, err := json.Marshal(q)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("agent: asking: %w", err)
	}
	return conn, nil
}

// receive collects output until the command ends.
func (p *Process) receive(ctx context.Context) {
	defer close(p.done)
	defer p.conn.Close()
	defer p.stop()
	for {
		kind, b, err := readFrame(p.conn)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			p.fail = fmt.Errorf("agent: %q: %w", p.command, err)
			return
		}
		p.mu.Lock()
		switch kind {
		case kindStdout:
			p.out.Write(b)
		case kindStderr:
			p.err.Write(b)
		}
		p.mu.Unlock()
		switch kind {
		case kindExit:
			if p.exit, err = strconv.Atoi(string(b)); err != nil {
				p.fail = fmt.Errorf("%w: exit status %q", ErrProtocol, b)
			}
			return
		case kindError:
			p.fail = fmt.Errorf("agent: %q: %s", p.command, b)
			return
		}
	}
}

// Wait waits for the end. The error is an *[ExitError] when the command failed.
func (p *Process) Wait() (Result, error) {
	<-p.done
	r := p.Output()
	if p.fail != nil {
		return r, p.fail
	}
	if r.Exit = p.exit; r.Exit != 0 {
		return r, &ExitError{r}
	}
	return r, nil
}

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns what was written until now.
func (p *Process) Output() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Result{Command: p.command, Stdout: p.out.String(), Stderr: p.err.String()}
}

// Kill ends the command, and all of its process group, at once.
func (p *Process) Kill() { _ = p.conn.Close() } // closed already: it has ended
