package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// canIsolate says why foreign programs cannot have a network of their own, ""
// when they can. Some listen on all addresses, so they run nowhere else.
func canIsolate() string {
	if os.Geteuid() != 0 {
		return "needs root: it listens on all addresses, so it runs in a network namespace of its own"
	}
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and the namespace with it
		tried <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	if errors.Is(<-tried, unix.EPERM) {
		return "needs CAP_SYS_ADMIN: it listens on all addresses, so it runs in a network namespace of its own"
	}
	return ""
}

// ownNet is a network namespace with nothing but loopback, held by a thread of
// its own. Processes that it starts die with that thread.
type ownNet struct {
	do         chan func()
	gone       chan struct{}
	server     []int  // cores of servers
	congestion string // TCP's congestion control in it
}

func openOwnNet(server []int) (*ownNet, error) {
	n := &ownNet{server: server, do: make(chan func()), gone: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(n.gone)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := n.enter()
		ready <- err
		if err != nil {
			return
		}
		for f := range n.do {
			f()
		}
	}()
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("bench: a network namespace for foreign programs: %w", err)
	}
	return n, nil
}

func (n *ownNet) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	n.congestion = loopbackCongestion()
	return nil
}

// loopbackCongestion asks for cubic on the routes of loopback, which is all
// that a namespace allows where cubic is not the default, and returns what
// connections use. Without the ip program the default stays, and is named.
func loopbackCongestion() string {
	for _, dst := range []string{"127.0.0.0/8", "127.0.0.1"} {
		_ = exec.Command("ip", "route", "replace", "local", dst, "dev", "lo", "table", "local",
			"proto", "kernel", "scope", "host", "src", "127.0.0.1", "congctl", wantedCongestion).Run()
	}
	name, err := congestionOfConnection()
	if err != nil {
		return "unknown"
	}
	return name
}

// congestionOfConnection makes a connection and asks it.
func congestionOfConnection() (string, error) {
	ln, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(ln) }()
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(c) }()
	err = errors.Join(unix.Bind(ln, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(ln, 1))
	if err != nil {
		return "", err
	}
	at, err := unix.Getsockname(ln)
	if err != nil {
		return "", err
	}
	if err := unix.Connect(c, at); err != nil {
		return "", err
	}
	return unix.GetsockoptString(c, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}

// close ends the thread, and with it what it may have started.
func (n *ownNet) close() {
	close(n.do)
	<-n.gone
}

// inside runs f on the namespace's thread.
func (n *ownNet) inside(f func() error) error {
	err := make(chan error, 1)
	n.do <- func() { err <- f() }
	return <-err
}

// errServerGone is a foreign server that ended before its client began.
var errServerGone = errors.New("the server ended before it listened")

const (
	// foreignTime bounds one run of a foreign program.
	foreignTime = 2 * time.Minute
	// foreignGrace is how long a server may outlive its client before it is ended.
	foreignGrace = 300 * time.Millisecond
	foreignPoll  = time.Millisecond
)

// run runs a server until it listens, then a client, and returns what the client
// printed and the processor time of both. Both are gone when it returns.
func (n *ownNet) run(ctx context.Context, env []string, file string, server, client []string) ([]byte, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, foreignTime, fmt.Errorf("not done after %v", foreignTime))
	defer cancel()
	srv := newForeign(env, file, server)
	if err := n.inside(func() error { return onCores(n.server, srv.start) }); err != nil {
		return nil, 0, err
	}
	defer srv.end(0)
	if err := srv.listening(ctx); err != nil {
		return nil, 0, err
	}
	cl := newForeign(env, file, client)
	if err := n.inside(cl.start); err != nil {
		return nil, 0, err
	}
	defer cl.end(0)
	select {
	case <-cl.done:
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
	if cl.err != nil {
		return nil, 0, cl.death(cl.err)
	}
	srv.end(foreignGrace)
	return cl.out.Bytes(), cl.cpu() + srv.cpu(), nil
}

// foreign is a process of a foreign program, in a process group of its own.
type foreign struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	said tail
	done chan struct{} // closed when it is gone and reaped
	err  error         // how it ended; read after done
}

func newForeign(env []string, file string, args []string) *foreign {
	f := &foreign{cmd: exec.Command(file, args...), done: make(chan struct{})}
	f.cmd.Env, f.cmd.Stdout, f.cmd.Stderr = env, &f.out, &f.said
	f.cmd.SysProcAttr = childAttr()
	f.cmd.WaitDelay = childGrace // for a grandchild that keeps the pipes
	return f
}

func (f *foreign) start() error {
	if err := f.cmd.Start(); err != nil {
		return err
	}
	go func() {
		f.err = f.cmd.Wait()
		close(f.done)
	}()
	return nil
}

// end waits for so long, then kills the process group and waits for its end.
func (f *foreign) end(grace time.Duration) {
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-f.done:
		return
	case <-late.C:
	}
	_ = unix.Kill(-f.cmd.Process.Pid, unix.SIGKILL) // it may have gone just now
	<-f.done
}

func (f *foreign) cpu() time.Duration {
	return f.cmd.ProcessState.UserTime() + f.cmd.ProcessState.SystemTime()
}

// death is an error with the process's last words.
func (f *foreign) death(err error) error {
	if s := f.said.String(); s != "" {
		return fmt.Errorf("%w; its last words: %s", err, s)
	}
	return fmt.Errorf("%w; its output: %.200q", err, bytes.TrimSpace(f.out.Bytes()))
}

// listening waits until a server's port is open, which nothing else in its
// namespace can be. Connecting to see would be taken for the client.
func (f *foreign) listening(ctx context.Context) error {
	port, err := strconv.Atoi(programPort)
	if err != nil {
		return err
	}
	tick := time.NewTicker(foreignPoll)
	defer tick.Stop()
	for {
		for _, table := range []string{"tcp", "tcp6"} {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", f.cmd.Process.Pid, table)) // gone when the process is
			if listens(string(b), port) {
				return nil
			}
		}
		select {
		case <-f.done:
			return f.death(errServerGone)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// listens reports whether a table of /proc/net/tcp has a socket that listens on
// a port.
func listens(table string, port int) bool {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
			return true
		}
	}
	return false
}
