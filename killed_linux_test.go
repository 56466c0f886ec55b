package hixl_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/hosttest"
)

// peerEnv makes this test binary the peer process: it holds the address to open.
const peerEnv = "HIXL_TEST_PEER"

const (
	peerBytes  = 4 << 20
	chunkBytes = 256 << 10
	chunks     = peerBytes / chunkBytes
	depth      = 6 // work requests in flight
)

func init() {
	if addr := os.Getenv(peerEnv); addr != "" {
		if err := servePeer(addr, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "peer:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// servePeer opens a NIC and some memory, tells where they are, and does nothing
// until its input ends: one-sided operations need nobody.
func servePeer(addr string, in io.Reader, out io.Writer) error {
	nic, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(addr)})
	if err != nil {
		return err
	}
	defer nic.Close()
	pd := nic.AllocPD()
	region, err := pd.Alloc(peerBytes, hixl.LocalWrite|hixl.RemoteWrite|hixl.RemoteRead)
	if err != nil {
		return err
	}
	pattern(region.Bytes(), 1)
	completions, err := nic.CreateCQ(16)
	if err != nil {
		return err
	}
	qp, err := nic.CreateQP(hixl.QPConfig{PD: pd, SendCQ: completions, RecvCQ: completions})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, qp.Address(), region.Addr(), region.RKey()); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return errors.Join(io.ErrUnexpectedEOF, lines.Err())
	}
	remote, err := hixl.ParseAddress(lines.Text())
	if err != nil {
		return err
	}
	if err := qp.Connect(remote, hixl.ConnectOptions{}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "connected"); err != nil {
		return err
	}
	lines.Scan()
	return lines.Err()
}

func pattern(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ seed
	}
}

// peerProcess is a connection to a NIC in another process.
type peerProcess struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	addr string
	va   uint64
	rkey uint32

	nic    *hixl.NIC
	region *hixl.Region
	cq     *hixl.CQ
	qp     *hixl.QP
	posted uint64
	done   []hixl.Completion // all so far, in order
}

// startPeer starts the process and connects to it.
func startPeer(t *testing.T, subnet int, o hixl.ConnectOptions) *peerProcess {
	p := &peerProcess{t: t, addr: fmt.Sprintf("127.92.%d.2", subnet)}
	exe, err := os.Executable()
	require.NoError(t, err)
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), peerEnv+"="+p.addr)
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	process := p.cmd.Process // and no more of p, which the end of a test would keep alive
	t.Cleanup(func() { _ = process.Kill() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the peer said nothing")
	var text string
	_, err = fmt.Sscan(lines.Text(), &text, &p.va, &p.rkey)
	require.NoError(t, err)
	remote, err := hixl.ParseAddress(text)
	require.NoError(t, err)

	p.nic, err = hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(fmt.Sprintf("127.92.%d.1", subnet))})
	require.NoError(t, err)
	pd := p.nic.AllocPD()
	p.region, err = pd.Alloc(peerBytes, hixl.LocalWrite)
	require.NoError(t, err)
	p.cq, err = p.nic.CreateCQ(4 * depth)
	require.NoError(t, err)
	p.qp, err = p.nic.CreateQP(hixl.QPConfig{PD: pd, SendCQ: p.cq, RecvCQ: p.cq, SignalAll: true})
	require.NoError(t, err)
	require.NoError(t, p.qp.Connect(remote, o))
	_, err = fmt.Fprintln(p.in, p.qp.Address())
	require.NoError(t, err)
	require.True(t, lines.Scan())
	require.Equal(t, "connected", lines.Text())
	return p
}

// post posts the next chunk of the memory, round and round.
func (p *peerProcess) post(op hixl.Op) {
	at := p.posted % chunks * chunkBytes
	require.NoError(p.t, p.qp.PostSend(hixl.SendWR{
		ID: p.posted, Op: op, SGE: []hixl.SGE{p.region.SGE(at, chunkBytes)}, RemoteAddr: p.va + at, RKey: p.rkey,
	}))
	p.posted++
}

// run keeps the queue full until n requests have completed or one has failed.
func (p *peerProcess) run(op hixl.Op, n int) (failed bool) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	buf := make([]hixl.Completion, depth)
	for len(p.done) < n {
		for p.posted-uint64(len(p.done)) < depth {
			p.post(op)
		}
		k, err := p.cq.Wait(ctx, buf)
		require.NoError(p.t, err)
		p.done = append(p.done, buf[:k]...)
		if buf[k-1].Status != cq.StatusSuccess {
			return true
		}
	}
	return false
}

// drain waits for all that was posted.
func (p *peerProcess) drain() {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	buf := make([]hixl.Completion, depth)
	for uint64(len(p.done)) < p.posted {
		k, err := p.cq.Wait(ctx, buf)
		require.NoError(p.t, err)
		p.done = append(p.done, buf[:k]...)
	}
}

// end lets the process go, killed or not, and closes the NIC.
func (p *peerProcess) end() {
	require.NoError(p.t, p.in.Close())
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(p.t, err, &exit)
		require.Equal(p.t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
	}
	require.NoError(p.t, p.nic.Close())
}

// footprint is what a process holds: live heap bytes and open files.
func footprint(t *testing.T) (heap uint64, files int) {
	for range 2 { // the second collects what finalizers and pools let go
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return m.HeapAlloc, len(list)
}

// A peer process that dies in the middle of a transfer: the side with work
// outstanding learns it, by an error that names the peer; the rest is flushed. When
// its NIC is closed, nothing is left of it. How soon that is, tests of package rc say.
func TestKilledPeer(t *testing.T) {
	const timeout, retries = 18, 1 // 1 s, two transmissions: while it lives it may stand still for a while
	kill := func(t *testing.T, subnet int, op hixl.Op) {
		p := startPeer(t, subnet, hixl.ConnectOptions{Timeout: timeout, Retries: retries})
		require.False(t, p.run(op, 20))
		for p.posted-uint64(len(p.done)) < depth {
			p.post(op)
		}
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL))
		require.True(t, p.run(op, 1<<30), "it goes on without a peer")
		p.drain()

		first := 0
		for p.done[first].Status == cq.StatusSuccess {
			first++
		}
		bad := p.done[first].Err()
		require.ErrorIs(t, bad, cq.ErrRetryExceeded)
		require.ErrorContains(t, bad, p.addr)
		var typed *hixl.StatusError
		require.ErrorAs(t, bad, &typed)
		require.Equal(t, p.addr, typed.Completion.Peer.String())
		for i, c := range p.done {
			require.Equal(t, uint64(i), c.WRID, "every request completes once, in order")
			if i > first {
				require.ErrorIs(t, c.Err(), cq.ErrFlushed)
			}
		}
		require.Equal(t, hixl.StateError, p.qp.State())
		if op == hixl.OpRead {
			want := make([]byte, peerBytes)
			pattern(want, 1)
			n := min(first, chunks) * chunkBytes
			require.True(t, bytes.Equal(want[:n], p.region.Bytes()[:n]), "what was read before is right")
		}
		p.end()
	}
	for i, role := range []struct {
		name string
		op   hixl.Op
	}{{"target of WRITEs", hixl.OpWrite}, {"source of READs", hixl.OpRead}} {
		t.Run(role.name, func(t *testing.T) {
			kill(t, 10+i, role.op) // what is made once in a process is made now
			before := goleak.IgnoreCurrent()
			heap, files := footprint(t)
			kill(t, 20+i, role.op)
			hosttest.AwaitNoLeaks(before)
			goleak.VerifyNone(t, before)
			heapAfter, filesAfter := footprint(t)
			require.Equal(t, files, filesAfter, "open files")
			require.Less(t, heapAfter, heap+256<<10, "live heap, %d before", heap)
		})
	}
}

// A peer process that stands still for a while, as under a debugger or in swap:
// the transfer goes on where it was, and every byte is right.
func TestStoppedPeer(t *testing.T) {
	for i, role := range []struct {
		name string
		op   hixl.Op
	}{{"target of WRITEs", hixl.OpWrite}, {"source of READs", hixl.OpRead}} {
		t.Run(role.name, func(t *testing.T) {
			t.Parallel()
			p := startPeer(t, 30+i, hixl.ConnectOptions{Timeout: 18, Retries: 7})
			want := make([]byte, peerBytes)
			pattern(want, 1)
			if role.op == hixl.OpWrite {
				pattern(want, 2)
				copy(p.region.Bytes(), want)
			}
			require.False(t, p.run(role.op, 20))
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
			for p.posted-uint64(len(p.done)) < depth {
				p.post(role.op)
			}
			waitStopped(t, p.cmd.Process.Pid)
			p.post(role.op) // those before may have been answered in the last moment
			before := p.qp.Stats().Timeouts
			require.Eventually(t, func() bool { return p.qp.Stats().Timeouts > before }, patience, time.Millisecond) // one of eight
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
			require.False(t, p.run(role.op, int(p.posted)+chunks), "it did not survive the pause")
			p.drain()
			if role.op == hixl.OpWrite { // read it back
				clear(p.region.Bytes())
				require.False(t, p.run(hixl.OpRead, int(p.posted)+2*chunks))
				p.drain()
			}
			for i, c := range p.done {
				require.NoError(t, c.Err())
				require.Equal(t, uint64(i), c.WRID)
			}
			require.True(t, bytes.Equal(want, p.region.Bytes()))
			p.end()
		})
	}
}

// waitStopped waits until the system says that the process is stopped.
func waitStopped(t *testing.T, pid int) {
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(rest, "T")
	}, patience, time.Millisecond)
}
