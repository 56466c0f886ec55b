//go:build linux

package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gohixl/hixl/interop/agent"
	"github.com/gohixl/hixl/interop/lab"
)

// toolPort is where the tools' servers listen on TCP.
const toolPort = "18515"

// program is a running program of a cell, in a guest or here.
type program interface {
	Wait() (output string, err error)
	Done() <-chan struct{}
	Kill()
}

// tool runs a Tool cell.
func (b *Bench) tool(ctx context.Context, c *Cell, role Role) (string, error) {
	serverHost, clientHost := b.hosts(c, role)
	server, err := b.start(ctx, c, serverHost, clientHost, Server)
	if err != nil {
		return "", err
	}
	defer server.Kill()
	if err := b.awaitServer(ctx, c, serverHost, server); err != nil {
		out, end := endNow(server)
		return "", errors.Join(err, end, wrong("the server is not ready: %s", out))
	}
	client, err := b.start(ctx, c, clientHost, serverHost, Client)
	if err != nil {
		return "", err
	}
	said, err := client.Wait()
	if err := c.Tool.judge("client", said, err, c.Tool.Says); err != nil {
		out, _ := endNow(server)
		return "", fmt.Errorf("%w; the server: %s", err, brief(out))
	}
	if c.Tool.ServerIsKilled || c.Tool.Fails {
		server.Kill()
		return result(said, c.Tool.Says), nil
	}
	select {
	case <-server.Done():
	case <-time.After(b.patience(endLimit)):
		out, _ := endNow(server)
		return "", wrong("the server does not end after the client: %s", brief(out))
	}
	heard, err := server.Wait()
	return result(said, c.Tool.Says), (&Tool{}).judge("server", heard, err, c.Tool.ServerSays)
}

// host is a place for a program: a guest, or with nil this host.
type host struct {
	guest *lab.Guest
	addr  string // of the cell's family
	tcp   string // for the tools' TCP connections
}

// hosts returns where server and client run.
func (b *Bench) hosts(c *Cell, role Role) (server, client host) {
	guest := func(i int) host {
		g := b.Lab.Guests[i]
		return host{g, g.Addr(c.family()).String(), g.IPv4.String()}
	}
	ours := host{nil, hostAddr(c.family()), lab.Host4}
	switch role {
	case Server:
		return ours, guest(0)
	case Client:
		return guest(0), ours
	case None:
	}
	return guest(1), guest(0)
}

// start launches an end of a cell.
func (b *Bench) start(ctx context.Context, c *Cell, at, peer host, role Role) (program, error) {
	values := map[string]string{"self": at.addr, "peer": peer.addr, "tcp": peer.tcp, "gid": gidIndex(c.family())}
	slow := ""
	if b.emulated() {
		slow = c.Tool.Slow
	}
	if at.guest == nil {
		args := strings.Fields(fill(c.Tool.Ours.line(role), values) + slow)
		return startHere(ctx, b.program(c.Tool.Program), append(args, b.carrier.flags()...))
	}
	p, err := at.guest.Start(ctx, fill(c.Tool.Theirs.line(role), values)+slow)
	if err != nil {
		return nil, err
	}
	return inGuest{p}, nil
}

// program is the path of one of ours.
func (b *Bench) program(name string) string {
	if name == "" {
		return b.Hixl
	}
	return filepath.Join(b.Dir, name)
}

// gidIndex is the number of a guest's GID of a family; 0 is the link-local one.
func gidIndex(family int) string {
	if family == 6 {
		return "2"
	}
	return "1"
}

// awaitServer waits until a client can connect.
func (b *Bench) awaitServer(ctx context.Context, c *Cell, at host, server program) error {
	check := listening(toolPort)
	switch {
	case c.Tool.Ready == "cm" && at.guest == nil:
		check = "grep -q ':12B7 ' /proc/net/udp /proc/net/udp6" // port 4791
	case c.Tool.Ready == "cm":
		check = "rdma resource show cm_id | grep -q LISTEN"
	}
	ended := false
	err := await(ctx, func() bool {
		select {
		case <-server.Done():
			ended = true
			return true
		default:
		}
		if at.guest == nil {
			return exec.CommandContext(ctx, "sh", "-c", check).Run() == nil
		}
		_, err := at.guest.Run(ctx, check)
		return err == nil
	})
	if ended {
		return wrong("the server has ended")
	}
	return err
}

// wrongBytes is what the tools say when verification fails.
var wrongBytes = regexp.MustCompile(`(?i)invalid data|mismatch|verification failed|byte \d+ of \d+ is 0x`)

// judge looks at how a program ended and at what it said.
func (t *Tool) judge(who, said string, err error, pattern string) error {
	if wrongBytes.MatchString(said) {
		return damaged("the %s: %s", who, brief(said))
	}
	if (err != nil) != t.Fails {
		return wrong("the %s: %v: %s", who, err, brief(said))
	}
	matched, bad := regexp.MatchString(pattern, said)
	if bad != nil {
		return bad
	}
	if !matched {
		return wrong("the %s says nothing like %q: %s", who, pattern, brief(said))
	}
	return nil
}

// result is the part of the output that the cell was looking for, in one line.
func result(said, pattern string) string {
	if pattern == "" {
		return ""
	}
	found := regexp.MustCompile(pattern).FindString(said) // it has matched
	return strings.Join(strings.Fields(found), " ")
}

// brief is an output in one line, begin and end if it is long.
func brief(s string) string {
	const most = 200 // of either
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 2*most {
		s = s[:most] + " ... " + s[len(s)-most:]
	}
	return s
}

func endNow(p program) (string, error) {
	p.Kill()
	return p.Wait()
}

// inGuest is a program in a guest.
type inGuest struct{ *agent.Process }

func (p inGuest) Wait() (string, error) {
	r, err := p.Process.Wait()
	return r.Stdout + r.Stderr, err
}

// here is a program on this host.
type here struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error // after done
}

// output collects what a program writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func startHere(ctx context.Context, path string, args []string) (program, error) {
	h := &here{cmd: exec.CommandContext(ctx, path, args...), out: new(output), done: make(chan struct{})}
	h.cmd.Stdout, h.cmd.Stderr = h.out, h.out
	h.cmd.Env = append(os.Environ(), "NO_COLOR=1")
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.cmd.WaitDelay = time.Second
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		h.err = h.cmd.Wait()
		close(h.done)
	}()
	return h, nil
}

func (h *here) Done() <-chan struct{} { return h.done }

func (h *here) Wait() (string, error) {
	<-h.done
	return h.out.String(), h.err
}

func (h *here) Kill() { _ = h.cmd.Process.Kill() } // it may have ended
