package chaostest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
)

// nodeEnv makes this test binary a node: it holds its address, and a directory for
// files that are its regions' memory.
const nodeEnv = "HIXL_CHAOS_NODE"

func init() {
	if what := os.Getenv(nodeEnv); what != "" {
		addr, dir, _ := strings.Cut(what, " ")
		if err := serve(addr, dir, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// mapFile returns the memory of a file that processes share, which outlives them.
func mapFile(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// regionFile is where the memory of a region lies.
func regionFile(dir string, d hixl.Descriptor) string {
	return filepath.Join(dir, fmt.Sprintf("%v-%d", d.Context, d.ID))
}

// share publishes a new region in memory that other processes can look at.
func share(c *hixl.Context, dir string) (*hixl.Region, error) {
	path := filepath.Join(dir, fmt.Sprint("new-", os.Getpid()))
	b, err := mapFile(path, storeSize)
	if err != nil {
		return nil, err
	}
	r, err := c.Register(b, rights)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(path, regionFile(dir, c.Describe(r))); err != nil {
		return nil, err
	}
	return r, c.Publish("data", r)
}

// serve is a node that does nothing but be there.
func serve(addr, dir string, in io.Reader, out io.Writer) error {
	c, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr(addr)})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Listen(context.Background(), ":18515"); err != nil {
		return err
	}
	if _, err := share(c, dir); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // until it is told to end
	return err
}

// process is a node in a process of its own.
type process struct {
	t     testing.TB
	addr  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startNode(t testing.TB, addr, dir string) *process {
	p := &process{t: t, addr: addr}
	exe, err := os.Executable()
	require.NoError(t, err)
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), nodeEnv+"="+addr+" "+dir)
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.lines = bufio.NewScanner(out)
	require.True(t, p.lines.Scan(), "the node said nothing")
	require.Equal(t, "ready", p.lines.Text())
	return p
}

func (p *process) signal(s syscall.Signal) {
	require.NoError(p.t, p.cmd.Process.Signal(s))
	if s == syscall.SIGSTOP {
		require.Eventually(p.t, p.stopped, time.Minute, time.Millisecond)
	}
}

// stopped reports whether every thread stands still: they are not stopped together.
func (p *process) stopped() bool {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	for _, path := range all {
		b, err := os.ReadFile(path)
		require.NoError(p.t, err)
		if _, rest, _ := strings.Cut(string(b), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return len(all) > 0
}

// end lets the node end in order.
func (p *process) end() {
	require.NoError(p.t, p.in.Close())
	require.NoError(p.t, p.cmd.Wait())
}

// A peer's process is stopped in the middle of a write, so that Cancel cannot fence it:
// ErrUnfenced, at the deadline. When it goes on, the fence comes, and from then on no
// byte of the write lands there, whatever becomes of its source.
func TestStoppedProcessIsFencedWhenItGoesOn(t *testing.T) {
	dir := t.TempDir()
	p := startNode(t, "127.101.1.2", dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr("127.101.1.1"), Peers: hixl.PeerConfig{FenceAfter: 20 * time.Millisecond}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	peer, err := c.Dial(ctx, p.addr+":18515")
	require.NoError(t, err)
	remote, err := peer.Region(ctx, "data")
	require.NoError(t, err)
	far, err := mapFile(regionFile(dir, remote.Descriptor()), storeSize)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(far)) }()
	src, err := c.Alloc(storeSize, hixl.LocalWrite)
	require.NoError(t, err)
	fill := func(b byte) {
		for i := range src.Bytes() {
			src.Bytes()[i] = b
		}
	}
	for round := range byte(5) {
		fill(0xA0 + round)
		var all []*hixl.Handle
		for range 8 { // more than the socket's buffers of a process that stands still
			h, err := peer.WriteAsync(hixl.Desc{Local: src, Remote: remote, Len: storeSize})
			require.NoError(t, err)
			all = append(all, h)
		}
		p.signal(syscall.SIGSTOP)
		h, err := peer.WriteAsync(hixl.Desc{Local: src, Remote: remote, Len: storeSize})
		require.NoError(t, err)
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		began := time.Now()
		err = h.Cancel(short)
		stop()
		require.ErrorIs(t, err, hixl.ErrUnfenced)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
		require.False(t, h.Fenced())

		p.signal(syscall.SIGCONT)
		for _, h := range append(all, h) {
			require.NoError(t, h.WaitFenced(ctx))
			require.True(t, h.Fenced())
		}
		was := append([]byte(nil), far...)
		fill(0xEE) // it is ours again
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, was, append([]byte(nil), far...), "bytes landed after the fence")
		require.NotContains(t, string(was), "\xee")
		require.ErrorIs(t, h.Err(), hixl.ErrCanceled)
		fill(round)
		for err = peer.Write(ctx, hixl.Desc{Local: src, Remote: remote, Len: storeSize}); err != nil; err = peer.Write(ctx, hixl.Desc{Local: src, Remote: remote, Len: storeSize}) {
			var e *hixl.TransferError
			require.ErrorAs(t, err, &e)
			require.True(t, e.Retriable, "%v", err)
		}
		require.EqualValues(t, round, far[storeSize-1])
	}
	p.end()
}
