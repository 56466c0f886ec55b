package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// stderrTail is how much of a child's standard error is kept for the report
	// of its death.
	stderrTail = 2 << 10
	// childGrace is how long a child may take to leave once its standard input
	// is closed, and how long its death may lag behind its pipes.
	childGrace = 5 * time.Second
)

// child is a peer process, controlled over its standard input and output.
type child struct {
	cmd    *exec.Cmd
	addr   netip.Addr
	in     *os.File // our end of its standard input
	out    *os.File // our end of its standard output
	stderr tail
	done   chan struct{} // closed when the process is gone
	err    error         // how it ended; read after done
}

// startChild starts the peer command. died is called once, from another
// goroutine, when the process ends, however that comes.
func startChild(command []string, addr netip.Addr, died func(error)) (*child, error) {
	if len(command) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, &PeerError{Addr: addr, Err: fmt.Errorf("finding this program to start it again: %w", err)}
		}
		command = []string{exe, "peer"}
	}
	c := &child{cmd: exec.Command(command[0], command[1:]...), addr: addr, done: make(chan struct{})}
	if err := c.start(); err != nil {
		return nil, &PeerError{Addr: addr, Err: fmt.Errorf("starting %s: %w", strings.Join(command, " "), err)}
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
		died(c.death())
	}()
	return c, nil
}

// stayingThread calls start on a thread that stays until the child's end: the signal
// for when this process dies comes when the thread ends that started the child, and
// one that something else locks to a goroutine does end.
func stayingThread(start func() (*child, error)) (*child, error) {
	var c *child
	var err error
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c, err = start()
		close(started)
		if err == nil {
			<-c.done
		}
	}()
	<-started
	return c, err
}

func (c *child) start() error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, childIn.Close(), in.Close())
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = childIn, childOut, &c.stderr
	c.cmd.SysProcAttr = childAttr()
	err = c.cmd.Start()
	_, _ = childIn.Close(), childOut.Close() // the child's ends are the child's now
	if err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	c.in, c.out = in, out
	return nil
}

// death is how the process ended; done must be closed.
func (c *child) death() error {
	err := c.err
	if err == nil {
		err = errors.New("exited with status 0 before it was asked to")
	}
	return &PeerError{Addr: c.addr, PID: c.cmd.Process.Pid, Err: fmt.Errorf("died: %w", err), Stderr: c.stderr.String()}
}

// explain turns an error on the pipes into the child's death, if it died.
func (c *child) explain(err error) error {
	select {
	case <-c.done:
		return c.death()
	case <-time.After(childGrace):
		return &PeerError{Addr: c.addr, PID: c.cmd.Process.Pid, Err: err, Stderr: c.stderr.String()}
	}
}

// hangUp closes the pipes, which asks the child to leave.
func (c *child) hangUp() { _, _ = c.in.Close(), c.out.Close() }

// stop asks the child to leave and makes sure that it did.
func (c *child) stop() {
	c.hangUp()
	select {
	case <-c.done:
		return
	case <-time.After(childGrace):
	}
	_ = c.cmd.Process.Kill() // it may have gone just now
	<-c.done
}

func (c *child) control() *control {
	return &control{wire: newWire(c.out, c.in), hangUp: c.hangUp, explain: c.explain}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

// Write keeps the end of what was written so far.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - stderrTail; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

// String returns it on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.b)), " ")
}
