package chaostest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/dsync"
	"github.com/gohixl/hixl/internal/hosttest"
)

// hostEnv makes this test binary a node that is at work: "seed number life directory".
const hostEnv = "HIXL_CHAOS_HOST"

const (
	hosts     = 4
	lives     = 64 // of a node, each of which has slots of its own
	pieceSize = 1500
	areaSize  = 4096 + hosts*lives*pieceSize
	lockLease = 300 * time.Millisecond
)

func init() {
	if what := os.Getenv(hostEnv); what != "" {
		h := &host{}
		if _, err := fmt.Sscan(what, &h.seed, &h.n, &h.life, &h.dir); err == nil {
			err = h.run()
			if err == nil {
				os.Exit(0)
			}
			h.say("bad: %v", err)
		}
		os.Exit(1)
	}
}

func hostAddr(seed uint64, n int) string { return fmt.Sprintf("127.101.%d.%d", 100+seed%100, 1+n) }

// host is a process that writes to others, adds, locks and gives up, and looks whether
// what must hold holds. It tells its parent in lines, which outlive it.
type host struct {
	seed    uint64
	n, life int
	dir     string
	c       *hixl.Context
	mu      sync.Mutex // one line at a time
}

func (h *host) say(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) // the parent may be gone
}

func (h *host) publish(name string) (*hixl.Region, []byte, error) {
	path := filepath.Join(h.dir, fmt.Sprintf("new-%d-%s", os.Getpid(), name))
	b, err := mapFile(path, areaSize)
	if err != nil {
		return nil, nil, err
	}
	r, err := h.c.Register(b, rights)
	if err != nil {
		return nil, nil, err
	}
	if name == "lock" {
		if err := dsync.InitLock(r, 0, lockLease); err != nil {
			return nil, nil, err
		}
	}
	if err := os.Rename(path, regionFile(h.dir, h.c.Describe(r))); err != nil {
		return nil, nil, err
	}
	return r, b, h.c.Publish(name, r)
}

func (h *host) run() (err error) {
	before := goleak.IgnoreCurrent()
	h.c, err = hixl.Open(hixl.Config{Address: netip.MustParseAddr(hostAddr(h.seed, h.n)), Peers: hixl.PeerConfig{
		FenceAfter: 20 * time.Millisecond, KeepAlive: 500 * time.Millisecond, Connect: hixl.ConnectOptions{Timeout: 14, Retries: 3},
		Recovery: hixl.RecoveryConfig{Max: 200 * time.Millisecond, GiveUp: 2 * time.Second},
	}})
	if err != nil {
		return err
	}
	if _, err = h.c.Listen(context.Background(), ":18515"); err != nil {
		return err
	}
	if _, _, err = h.publish("lock"); err != nil {
		return err
	}
	region, b, err := h.publish("data")
	if err != nil {
		return err
	}
	h.say("ready")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	for to := range hosts { // itself among them
		for i, work := range []func(context.Context, *rand.Rand, int){h.write, h.add, h.lock} {
			rng := rand.New(rand.NewPCG(h.seed, uint64(h.life*100+h.n*10+to)<<8|uint64(i)))
			all.Go(func() { work(ctx, rng, to) })
		}
	}
	type dead struct{ b, was []byte }
	var gone []dead
	for in := bufio.NewScanner(os.Stdin); in.Scan() && in.Text() != "quit"; {
		if err := region.Deregister(context.Background()); err != nil {
			return err
		}
		gone = append(gone, dead{b, bytes.Clone(b)})
		if region, b, err = h.publish("data"); err != nil {
			return err
		}
	}
	stop()
	all.Wait()
	for _, d := range gone {
		if !bytes.Equal(d.b, d.was) {
			h.say("bad: a region that was deregistered has changed, from byte %d on", differ(d.b, d.was))
		}
	}
	if err := h.c.Close(); err != nil {
		return err
	}
	hosttest.AwaitNoLeaks(before)
	return goleak.Find(before)
}

// find looks a region of another up, and its memory.
func (h *host) find(ctx context.Context, to int, name string) (*hixl.Peer, *hixl.RemoteRegion, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	p, err := h.c.Dial(ctx, hostAddr(h.seed, to)+":18515")
	if err != nil {
		return nil, nil, nil, err
	}
	named, err := p.Region(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := p.Import(named.Descriptor()) // which stays what it is
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := mapFile(regionFile(h.dir, r.Descriptor()), areaSize)
	return p, r, b, err
}

func nap(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// write writes to its slot at another, gives up at times, and looks after the fence.
func (h *host) write(ctx context.Context, rng *rand.Rand, to int) {
	src, err := h.c.Alloc(pieceSize, hixl.LocalWrite)
	if err != nil {
		h.say("bad: %v", err)
		return
	}
	at := 4096 + (h.n*lives+h.life)*pieceSize
	for ctx.Err() == nil {
		p, r, b, err := h.find(ctx, to, "data")
		if err != nil {
			nap(ctx, time.Millisecond)
			continue
		}
		slot := b[at:][:pieceSize]
		for range 20 {
			v := byte(1 + rng.IntN(200))
			fill(src.Bytes(), v)
			short, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20_000))*time.Microsecond)
			err := p.Write(short, hixl.Desc{Local: src, Remote: r, RemoteOff: uint64(at), Len: pieceSize})
			cancel()
			var e *hixl.TransferError
			if err != nil && !typed(err) && ctx.Err() == nil {
				h.say("bad: an error of no type: %v", err)
			}
			if errors.As(err, &e) && !e.Fenced {
				h.say("unfenced")
				end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				err := e.Handle.WaitFenced(end)
				cancel()
				if err != nil { // it was killed for good, or the run is over
					h.say("never fenced")
					return
				}
			}
			was := bytes.Clone(slot)
			fill(src.Bytes(), 0xEE)
			if err == nil && (was[0] != v || was[pieceSize-1] != v) {
				h.say("bad: a write is done, and its bytes are not there")
			}
			nap(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
			if !bytes.Equal(was, slot) {
				h.say("bad: bytes landed after the fence (%v)", err)
			}
			if err == nil {
				h.say("wrote")
			}
			if ctx.Err() != nil || err != nil {
				break
			}
		}
		_ = unix.Munmap(b)
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// add adds to the word of another, and tells before and after.
func (h *host) add(ctx context.Context, rng *rand.Rand, to int) {
	for ctx.Err() == nil {
		p, r, b, err := h.find(ctx, to, "data")
		if err != nil {
			nap(ctx, time.Millisecond)
			continue
		}
		_ = unix.Munmap(b)
		for err == nil && ctx.Err() == nil {
			name := filepath.Base(regionFile(h.dir, r.Descriptor()))
			h.say("add %s", name)
			short, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20_000))*time.Microsecond)
			_, err = p.FetchAdd(short, r, 1024, 1)
			cancel()
			var e *hixl.TransferError
			switch executed := errors.As(err, &e) && e.Executed; {
			case err == nil:
				h.say("added %s", name)
			case !executed:
				h.say("unadded %s", name)
			}
			nap(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
		}
	}
}

// ticks is a clock that all processes share.
func ticks() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // never fails
	return t.Nano()
}

// lock takes the lock of the first two, and tells from when until when it had it.
func (h *host) lock(ctx context.Context, rng *rand.Rand, to int) {
	for to < 2 && ctx.Err() == nil {
		_, r, b, err := h.find(ctx, to, "lock")
		if err != nil {
			nap(ctx, time.Millisecond)
			continue
		}
		_ = unix.Munmap(b)
		l, err := dsync.OpenLock(ctx, r, 0)
		for err == nil && ctx.Err() == nil {
			short, cancel := context.WithTimeout(ctx, time.Second)
			var x *dsync.Lease
			x, err = l.Acquire(short)
			cancel()
			if err != nil {
				break
			}
			from := ticks()
			until := from + int64(time.Until(x.Until()))
			h.say("held %s %d %d %d", filepath.Base(regionFile(h.dir, r.Descriptor())), x.Token(), from, until)
			nap(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
			h.say("free %s %d %d", filepath.Base(regionFile(h.dir, r.Descriptor())), x.Token(), ticks())
			err = x.Release(context.WithoutCancel(ctx))
			nap(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
		}
	}
}

// ledger is what the processes have told.
type ledger struct {
	sync.Mutex
	bad                   []string
	begun, added, unadded map[string]uint64
	held                  map[string][]span // by lock
	count                 map[string]int
}

type span struct {
	token       uint64
	from, until int64
}

func (l *ledger) line(s string) {
	l.Lock()
	defer l.Unlock()
	f := strings.Fields(s)
	num := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	l.count[f[0]]++
	switch {
	case f[0] == "bad:":
		l.bad = append(l.bad, s)
	case f[0] == "add" && len(f) == 2:
		l.begun[f[1]]++
	case f[0] == "added" && len(f) == 2:
		l.added[f[1]]++
	case f[0] == "unadded" && len(f) == 2:
		l.unadded[f[1]]++
	case f[0] == "held" && len(f) == 5:
		l.held[f[1]] = append(l.held[f[1]], span{uint64(num(2)), num(3), num(4)})
	case f[0] == "free" && len(f) == 4:
		for i := range l.held[f[1]] {
			if x := &l.held[f[1]][i]; x.token == uint64(num(2)) {
				x.until = min(x.until, num(3))
			}
		}
	}
}

// hostProcess is a host as its parent has it.
type hostProcess struct {
	cmd  *exec.Cmd
	in   *os.File
	read chan struct{} // closed when all it said is read
}

func startHost(t *testing.T, l *ledger, seed uint64, n, life int, dir string) *hostProcess {
	exe, err := os.Executable()
	require.NoError(t, err)
	h := &hostProcess{cmd: exec.Command(exe), read: make(chan struct{})}
	h.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d %s", hostEnv, seed, n, life, dir))
	h.cmd.Stderr = os.Stderr
	in, out, err := os.Pipe()
	require.NoError(t, err)
	h.cmd.Stdin, h.in = in, out
	lines, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, h.cmd.Start())
	_ = in.Close()
	process := h.cmd.Process
	t.Cleanup(func() { _ = process.Kill() })
	go func() {
		defer close(h.read)
		for s := bufio.NewScanner(lines); s.Scan(); {
			if len(s.Text()) > 0 {
				l.line(s.Text())
			}
		}
	}()
	return h
}

// end waits for it; it was killed, or told to quit.
func (h *hostProcess) end() error {
	<-h.read
	_ = h.in.Close()
	return h.cmd.Wait()
}

// Four processes over loopback that are killed, stopped and restarted, and whose
// regions go, while each is at work on all others.
func TestChaosProcesses(t *testing.T) {
	seeds := setting("HIXL_CHAOS_PROCESS_SEEDS", 2)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { processes(t, seed, 4*time.Second) })
	}
}

func processes(t *testing.T, seed uint64, d time.Duration) {
	dir := t.TempDir()
	l := &ledger{begun: map[string]uint64{}, added: map[string]uint64{}, unadded: map[string]uint64{}, held: map[string][]span{}, count: map[string]int{}}
	rng := rand.New(rand.NewPCG(seed, 4))
	var all [hosts]*hostProcess
	var life [hosts]int
	var stopped [hosts]time.Time
	for n := range all {
		all[n] = startHost(t, l, seed, n, 0, dir)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(20+rng.IntN(150)) * time.Millisecond)
		for n := range all {
			if !stopped[n].IsZero() && time.Now().After(stopped[n]) {
				require.NoError(t, all[n].cmd.Process.Signal(syscall.SIGCONT))
				stopped[n] = time.Time{}
			}
		}
		n := rng.IntN(hosts)
		switch rng.IntN(4) {
		case 0:
			l.line("kills")
			require.NoError(t, all[n].cmd.Process.Kill())
			_ = all[n].end()
			life[n]++
			stopped[n] = time.Time{}
			require.Less(t, life[n], lives)
			all[n] = startHost(t, l, seed, n, life[n], dir)
		case 1:
			if stopped[n].IsZero() {
				l.line("stops")
				require.NoError(t, all[n].cmd.Process.Signal(syscall.SIGSTOP))
				stopped[n] = time.Now().Add(time.Duration(rng.IntN(1200)) * time.Millisecond)
			}
		default:
			l.line("deregistrations")
			_, err := fmt.Fprintln(all[n].in, "deregister")
			require.NoError(t, err)
		}
	}
	for n := range all {
		_ = all[n].cmd.Process.Signal(syscall.SIGCONT)
	}
	time.Sleep(time.Second) // all are back
	for n := range all {
		_, err := fmt.Fprintln(all[n].in, "quit")
		require.NoError(t, err)
	}
	for n := range all {
		if err := all[n].end(); err != nil {
			l.bad = append(l.bad, fmt.Sprintf("process %d: %v", n, err))
		}
	}
	t.Log(l.count) // all have ended
	require.Empty(t, l.bad)
	require.NotZero(t, l.count["wrote"])
	require.NotZero(t, l.count["added"])
	require.NotZero(t, l.count["held"])
	for name, begun := range l.begun {
		b, err := mapFile(filepath.Join(dir, name), areaSize)
		require.NoError(t, err)
		v := binary.NativeEndian.Uint64(b[1024:])
		require.NoError(t, unix.Munmap(b))
		require.GreaterOrEqual(t, v, l.added[name], "what was acknowledged")
		require.LessOrEqual(t, v, begun-l.unadded[name], "what may have been executed")
	}
	for name, spans := range l.held {
		slices.SortFunc(spans, func(a, b span) int { return int(a.token) - int(b.token) })
		for i, x := range spans[1:] {
			require.Greater(t, x.token, spans[i].token, "tokens of %s", name)
			require.GreaterOrEqual(t, x.from, spans[i].until, "two have held %s", name)
		}
	}
}
