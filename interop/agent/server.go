//go:build unix

package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
)

// shell interprets commands.
const shell = "/bin/sh"

// Serve answers requests, each on a goroutine of its own, until the listener
// fails, and returns why. A command whose client goes away is killed with its
// process group.
func Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(c)
	}
}

func serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	out := &frames{w: c}
	q, err := readRequest(r)
	code := 0
	switch {
	case err != nil:
	case q.Path != "":
		err = store(q, r)
	default:
		code, err = run(q.Command, r, out)
	}
	if err != nil {
		_ = out.write(kindError, []byte(err.Error())) // the client may be gone
		return
	}
	_ = out.write(kindExit, strconv.AppendInt(nil, int64(code), 10))
}

// run executes a command and returns its exit status, 128 and the signal when
// one ended it. Whatever comes from r, the end included, ends the command.
func run(command string, r io.Reader, out *frames) (int, error) {
	cmd := exec.Command(shell, "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var ended atomic.Bool
	go func() {
		_, _ = r.Read(make([]byte, 1))
		if !ended.Load() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	// A job in the background that holds a pipe is part of the command.
	copied := make(chan struct{}, 2)
	for _, p := range []struct {
		from io.Reader
		kind byte
	}{{stdout, kindStdout}, {stderr, kindStderr}} {
		go func() {
			_, _ = io.Copy(stream{out, p.kind}, p.from) // a client that is gone ends the command, above
			copied <- struct{}{}
		}()
	}
	<-copied
	<-copied
	ended.Store(true) // from here on the group's number may become another's
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// store writes a file of the size that was announced, in place of one that may
// be in use.
func store(q request, r io.Reader) error {
	tmp := q.Path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, os.FileMode(q.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, q.Size)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("storing %s: %w", q.Path, errors.Join(err, os.Remove(tmp)))
	}
	return os.Rename(tmp, q.Path)
}
