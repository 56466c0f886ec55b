package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// nextNet gives each test two addresses that no other test uses, nor the same
// test run by another process at the same time.
var nextNet atomic.Uint32

func addresses() (a, b netip.Addr) {
	n, process := byte(nextNet.Add(1)), byte(os.Getpid()%127)
	return netip.AddrFrom4([4]byte{127, 99, n, 2*process + 1}), netip.AddrFrom4([4]byte{127, 99, n, 2*process + 2})
}

// small is a run of little data.
func small(t *testing.T) Config {
	t.Helper()
	a, b := addresses()
	return Config{
		Local: a, PeerLocal: b, InProcess: true, Region: 256 << 10, Sizes: []int{64, 100, 5000, 64 << 10},
		Duration: 2 * minSlice, Rounds: 2, Seed: 1,
	}
}

// steps counts what a Progress hears.
type steps struct {
	total, done int
	ended       bool
}

func (s *steps) Begin(n int) { s.total = n }
func (s *steps) Step(string) { s.done++ }
func (s *steps) End()        { s.ended = true }

func TestRunEveryOperation(t *testing.T) {
	cfg := small(t)
	var p steps
	r, err := Run(t.Context(), cfg, &p)
	require.NoError(t, err)
	require.Equal(t, p.total, p.done)
	require.True(t, p.ended)

	var got []string
	for _, x := range r.Results {
		got = append(got, x.Op.String()+" "+formatSize(x.Size))
		require.True(t, x.Verified)
		require.Positive(t, x.GBPerS, got)
		require.Positive(t, x.MsgsPerS, got)
		require.Positive(t, x.LatencyUS.P50, got)
		require.LessOrEqual(t, x.LatencyUS.P50, x.LatencyUS.P999, got)
		require.Positive(t, x.CPUPerGB, got)
		require.Len(t, x.Rounds, 2)
		for _, q := range x.Rounds {
			require.Positive(t, q.GBPerS)
			require.Positive(t, q.Elapsed)
			require.Positive(t, q.Packets)
		}
	}
	require.Equal(t, []string{
		"write 64", "write 100", "write 5000", "write 64KiB", "read 64", "read 100", "read 5000", "read 64KiB",
		"send 64", "send 100", "send 5000", "send 64KiB", "write-imm 64", "write-imm 100", "write-imm 5000", "write-imm 64KiB",
		"cas 8", "faa 8",
	}, got)
	require.Len(t, r.Baselines, 10, "tcp and memcpy at five sizes")
	for _, b := range r.Baselines {
		require.Len(t, b.Rounds, 2)
		require.Zero(t, b.Rounds[0].Packets)
	}
	require.Len(t, r.Ratios, 2*len(r.Results))
	for _, q := range r.Ratios {
		require.Equal(t, 2, q.Rounds)
		require.Positive(t, q.Min)
	}
	require.Equal(t, modeInProcess, r.Config.Mode)
	require.Contains(t, r.Config.TCP, "TCP_NODELAY")
}

func TestRunSeveralQueuePairs(t *testing.T) {
	cfg := small(t)
	cfg.Sizes, cfg.QPs, cfg.Depths, cfg.MTUs, cfg.Rounds = []int{3000}, []int{1, 5}, []int{1, 17}, []int{256}, 1
	cfg.Duration, cfg.Baselines = minSlice, []Baseline{}
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Len(t, r.Results, 6*2*2)
	require.Empty(t, r.Ratios)
}

func TestRunWithFaults(t *testing.T) {
	cfg := small(t)
	cfg.Sizes, cfg.Rounds, cfg.Duration, cfg.Baselines = []int{64 << 10}, 1, 50*time.Millisecond, []Baseline{}
	cfg.Faults = Faults{Loss: 0.02, Reorder: 0.02, Duplicate: 0.01, Corrupt: 0.01}
	for harmed := false; !harmed; cfg.Duration *= 4 { // where the machine stands still, few packets are sent
		require.Less(t, cfg.Duration, time.Minute, "an operation has lost nothing")
		r, err := Run(t.Context(), cfg, nil)
		require.NoError(t, err)
		harmed = true
		for _, x := range r.Results {
			require.True(t, x.Verified)
			harmed = harmed && x.Retransmits > 0 && x.SeqNAKs+x.Timeouts > 0
		}
	}
}

// opened is a session with a peer whose memory a test can reach.
func opened(t *testing.T, cfg Config) (*session, *peer) {
	t.Helper()
	cfg = cfg.withDefaults()
	here, there := net.Pipe()
	p := newPeer(netip.Addr{})
	var gone sync.WaitGroup
	gone.Go(func() {
		defer there.Close()
		defer p.close()
		_ = p.serve(t.Context(), newWire(there, there))
	})
	s := &session{
		control: &control{wire: newWire(here, here), hangUp: func() { _ = here.Close() }}, mode: modeInProcess,
		stop: func() {
			_ = here.Close()
			gone.Wait()
		},
	}
	require.NoError(t, s.open(t.Context(), cfg))
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return s, p
}

// tampering is a mover after whose timed parts something happens.
type tampering struct {
	mover
	tamper func()
}

func (m *tampering) verify(ctx context.Context, key uint64) error {
	m.tamper()
	return m.mover.verify(ctx, key)
}

func TestWrongMemoryFailsTheRun(t *testing.T) {
	cfg := small(t)
	s, p := opened(t, cfg)
	flip := func(b []byte, at int) func() { return func() { b[at] ^= 4 } }
	for i, c := range []struct {
		name   string
		op     Op
		tamper func(*cellMover) func()
		says   string
	}{
		{"write", OpWrite, func(*cellMover) func() { return flip(p.ep.dst.Bytes(), 1234) }, "write of 64 bytes, round 1, responder's memory: offset 0x4d2: want "},
		{"send", OpSend, func(*cellMover) func() { return flip(p.ep.dst.Bytes(), 0) }, "responder's memory: offset 0x0: want "},
		{"write-imm", OpWriteImm, func(*cellMover) func() { return flip(p.ep.dst.Bytes(), 70) }, "responder's memory: offset 0x46: want "},
		{"read", OpRead, func(*cellMover) func() { return flip(s.ep.dst.Bytes(), 99) }, "requester's memory: offset 0x63: want "},
		{"cas counter", OpCAS, func(*cellMover) func() { return flip(p.ep.dst.Bytes(), 0) }, "responder's memory: counter 0 after"},
		{"faa counter", OpFAA, func(*cellMover) func() { return flip(p.ep.dst.Bytes(), 0) }, "responder's memory: counter 0 after"},
		{"faa result", OpFAA, func(m *cellMover) func() {
			return func() { m.in.op.(*faaOp).seen[0] &^= 1 << 9 }
		}, "requester's memory: no FETCH_ADD returned the start plus 9"},
		{"a message that was never sent", OpWrite, func(m *cellMover) func() {
			return func() { m.in.lane[0].walk.next() }
		}, "responder's memory: offset"},
		{"beyond the messages", OpWrite, func(m *cellMover) func() {
			return flip(p.ep.dst.Bytes(), len(p.ep.dst.Bytes())-1)
		}, "responder's memory: offset 0x3ffff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := 64
			if c.op.atomic() {
				size = atomicSize
			}
			if c.name == "beyond the messages" {
				size = 100 // leaves a gap at the end of the region
			}
			ce := newCell(i, c.op, size, 1, 0, 0)
			m := &cellMover{s: s, cell: ce}
			ct := &contender{
				mover: m, name: ce.Op.String(), size: size, id: i, seed: 1, series: newSeries(),
				budget: budget{bandwidth: time.Millisecond, minMessages: 100, minLatency: 2},
			}
			require.NoError(t, ct.round(t.Context(), 0), "untouched memory is right")
			require.Len(t, ct.series.samples, 1)
			ct.mover = &tampering{mover: m, tamper: c.tamper(m)}
			err := ct.round(t.Context(), 0)
			require.ErrorIs(t, err, ErrVerify)
			require.ErrorContains(t, err, "verification failed: "+ce.Op.String())
			require.ErrorContains(t, err, c.says)
			require.NoError(t, ct.shut(t.Context()))
		})
	}
}

func TestFetchAddResultsMustBeNewAndPosted(t *testing.T) {
	s, _ := opened(t, small(t))
	lay, err := newLayout(4096, atomicSize*4, 1)
	require.NoError(t, err)
	put := func(r *results, n, v uint64) {
		binary.NativeEndian.PutUint64(s.ep.dst.Bytes()[r.offset(0, n):], v)
	}
	op := &faaOp{results: results{buffer: s.ep.dst, lay: lay, depth: 4}, last: make([]uint64, 1)}
	op.begin(1, nil)
	op.posted = 3
	put(&op.results, 0, op.base)
	put(&op.results, 1, op.base+2)
	put(&op.results, 2, op.base+1)
	require.NoError(t, op.completed(0, 0, 2))
	require.ErrorIs(t, op.completed(0, 2, 3), ErrVerify, "falling")
	put(&op.results, 2, op.base+2)
	require.ErrorIs(t, op.completed(0, 2, 3), ErrVerify, "seen before")
	put(&op.results, 2, op.base+3)
	require.ErrorIs(t, op.completed(0, 2, 3), ErrVerify, "more than were posted")
	put(&op.results, 2, op.base-1)
	require.ErrorIs(t, op.completed(0, 2, 3), ErrVerify, "before the start")
	require.ErrorIs(t, op.end(), ErrVerify, "one is missing")
}

func TestRunStopsWithItsContext(t *testing.T) {
	cfg := small(t)
	cfg.Duration = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	p := onStep(func(string) { time.AfterFunc(100*time.Millisecond, func() { cancel(why) }) })
	_, err := Run(ctx, cfg, p)
	require.ErrorIs(t, err, why)
}

// A run that is interrupted reports the cells that have finished a round, and no
// more; one that is interrupted before that reports nothing.
func TestInterruptedRunReportsWhatIsFinished(t *testing.T) {
	for _, at := range []int{2, 4} {
		cfg := small(t)
		cfg.Sizes, cfg.Ops, cfg.Rounds, cfg.Baselines = []int{64}, []Op{OpWrite, OpRead, OpSend}, 2, []Baseline{BaselineTCP}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		step := 0
		r, err := Run(ctx, cfg, onEveryStep(func() {
			if step++; step == at { // of tcp, write, read, send
				cancel(why)
			}
		}))
		require.ErrorIs(t, err, why)
		if at == 2 {
			require.Nil(t, r)
			continue
		}
		require.True(t, r.Interrupted)
		require.Len(t, r.Results, 2)
		require.Equal(t, []Op{OpWrite, OpRead}, []Op{r.Results[0].Op, r.Results[1].Op})
		for _, x := range r.Results {
			require.Positive(t, x.GBPerS)
			require.Positive(t, x.LatencyUS.P50)
		}
		require.Len(t, r.Baselines, 1)
		require.Len(t, r.Ratios, 2)
		require.Equal(t, 1, r.Ratios[0].Rounds)
	}
}

// onEveryStep is a Progress that does something at each step.
type onEveryStep func()

func (f onEveryStep) Begin(int)   {}
func (f onEveryStep) Step(string) { f() }
func (f onEveryStep) End()        {}

// onStep is a Progress that does something at the first step.
func onStep(f func(string)) Progress { return &hook{f: f} }

type hook struct {
	once sync.Once
	f    func(string)
}

func (h *hook) Begin(int)        {}
func (h *hook) Step(what string) { h.once.Do(func() { h.f(what) }) }
func (h *hook) End()             {}

func TestRunTwoProcesses(t *testing.T) {
	cfg := small(t)
	cfg.InProcess, cfg.PeerCommand = false, childCommand(t, "peer")
	cfg.Sizes, cfg.Rounds, cfg.Duration = []int{4096}, 1, minSlice
	r, err := Run(t.Context(), cfg, nil)
	require.NoError(t, err)
	require.Len(t, r.Results, 6)
	require.Equal(t, modeProcesses, r.Config.Mode)
}

func TestKilledChildEndsTheRun(t *testing.T) {
	cfg := small(t)
	cfg.InProcess, cfg.PeerCommand = false, childCommand(t, "short-lived peer")
	cfg.Ops, cfg.Duration = []Op{OpWrite}, time.Hour
	for _, base := range [][]Baseline{{}, {BaselineTCP}} {
		cfg.Baselines = base
		_, err := Run(t.Context(), cfg, nil)
		var pe *PeerError
		require.ErrorAs(t, err, &pe)
		require.Equal(t, cfg.PeerLocal, pe.Addr)
		require.NotZero(t, pe.PID)
		require.ErrorContains(t, err, "signal: killed")
	}
}

// The timed parts allocate nothing per message.
func TestTimedPartsDoNotAllocate(t *testing.T) {
	everyAllocation(t)
	s, _ := opened(t, small(t))
	for _, op := range AllOps() {
		size := 64
		if op.atomic() {
			size = atomicSize
		}
		m := &cellMover{s: s, cell: newCell(int(op), op, size, 1, 0, 0)}
		require.NoError(t, m.open(t.Context()))
		require.NoError(t, m.prepare(t.Context(), 1))
		run := func(n uint64) int64 {
			before := allocations()
			_, _, err := m.stream(t.Context(), 0, n)
			require.NoError(t, err)
			require.NoError(t, m.pingPong(t.Context(), 0, n/10, newHistogram()))
			return allocations() - before
		}
		const n = 5000
		run(n)
		require.Less(t, run(n), int64(n/25), "%v", op)
		require.NoError(t, m.close(t.Context()))
	}
}

func TestBusyAddressIsNamed(t *testing.T) {
	cfg := small(t)
	nic, err := hixl.OpenNIC(hixl.Config{Address: cfg.PeerLocal})
	require.NoError(t, err)
	defer nic.Close()
	_, err = Run(t.Context(), cfg, nil)
	require.ErrorIs(t, err, ErrPeer)
	require.ErrorContains(t, err, cfg.PeerLocal.String())

	cfg.Local, cfg.PeerLocal = cfg.PeerLocal, cfg.Local
	_, err = Run(t.Context(), cfg, nil)
	require.Error(t, err)
	require.ErrorContains(t, err, cfg.Local.String())
}

func TestPeerThatIsNotThere(t *testing.T) {
	a, _ := addresses()
	_, err := Run(t.Context(), Config{Local: a, Peer: "127.0.0.1:1"}, nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "--serve")
}

func TestPeerRefusesWhatItMustNotDo(t *testing.T) {
	s, _ := opened(t, small(t))
	ask := func(req *request) error {
		_, err := s.call(t.Context(), req)
		return err
	}
	write := newCell(0, OpWrite, 64, 1, 0, 0)
	for name, req := range map[string]*request{
		"an unknown verb":              {Do: "dance"},
		"hello twice":                  {Do: doHello, Hello: &hello{Version: protocolVersion, Region: 4096}},
		"open without a cell":          {Do: doOpen},
		"no addresses":                 {Do: doOpen, Open: &openCell{Cell: write}},
		"an address of nobody":         {Do: doOpen, Open: &openCell{Cell: write, Addresses: []string{"nobody"}}},
		"depth 0":                      {Do: doOpen, Open: &openCell{Cell: cell{Size: 1, QPs: 1}}},
		"too many queue pairs":         {Do: doOpen, Open: &openCell{Cell: cell{Size: 1, QPs: MaxQPs + 1, Depth: 1}}},
		"messages beyond the region":   {Do: doOpen, Open: &openCell{Cell: newCell(0, OpWrite, 1<<30, 1, 1, 0)}},
		"counters beyond the region":   {Do: doPrepare, Prepare: &preparation{Counters: 1 << 40}},
		"counters below zero":          {Do: doPrepare, Prepare: &preparation{Counters: -1}},
		"finish of a cell not open":    {Do: doFinish, Cell: 7},
		"close of a cell not open":     {Do: doClose, Cell: 7},
		"a tcp size beyond the region": {Do: doTCPOpen, TCP: &tcpSpec{Size: 1 << 29}},
		"no tcp size":                  {Do: doTCPOpen},
		"a tcp receiver not open":      {Do: doTCPTake, TCP: &tcpSpec{Size: 64}},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, ask(req), ErrPeer) })
	}
	require.NoError(t, ask(&request{Do: doUsage}), "the session goes on")

	// What cannot be read ends it, with a word why.
	none := request{Do: doOpen, Open: &openCell{Cell: cell{Op: opCount, Size: 1, QPs: 1, Depth: 1}}}
	require.ErrorContains(t, ask(&none), `--op "unknown"`)
	require.ErrorIs(t, ask(&request{Do: doUsage}), ErrPeer)
}

func TestPeerWantsHelloFirst(t *testing.T) {
	p := newPeer(netip.Addr{})
	require.NotEmpty(t, p.answer(t.Context(), &request{Do: doUsage}).Err)
	require.Contains(t, p.answer(t.Context(), &request{Do: doHello, Hello: &hello{Version: 99, Region: 4096}}).Err, "same hixl-bench")
	require.Contains(t, p.answer(t.Context(), &request{Do: doHello, Hello: &hello{Version: protocolVersion, Region: -1}}).Err, "region")
}
