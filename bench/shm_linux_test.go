package bench

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func shared(t *testing.T, size int) *sharedMemory {
	t.Helper()
	m, err := shareMemory(size)
	require.NoError(t, err)
	t.Cleanup(m.close)
	return m
}

func TestShmMovesAndVerifies(t *testing.T) {
	for _, inProcess := range []bool{true, false} {
		cfg := small(t)
		if cfg.InProcess = inProcess; !inProcess {
			cfg.PeerCommand = childCommand(t, "peer")
		}
		cfg.Ops, cfg.Baselines, cfg.Sizes, cfg.Region = []Op{OpWrite}, []Baseline{BaselineShm}, []int{1, 8, 100, 4096, 200_000}, 1<<20
		r, err := Run(t.Context(), cfg, nil)
		require.NoError(t, err)
		require.Len(t, r.Baselines, 5)
		for _, x := range r.Baselines {
			require.Positive(t, x.GBPerS)
			require.Positive(t, x.LatencyUS.P50)
			require.Positive(t, x.CPUPerGB)
		}
	}
}

func TestShmFindsWrongBytes(t *testing.T) {
	s, p := opened(t, small(t))
	p.trusted = true
	m := &shmMover{s: s, size: 64}
	require.NoError(t, m.open(t.Context()))
	defer func() { require.NoError(t, m.close(t.Context())) }()
	require.NoError(t, m.prepare(t.Context(), 1))
	_, _, err := m.stream(t.Context(), time.Millisecond, 100)
	require.NoError(t, err)
	require.NoError(t, m.verify(t.Context(), 1))
	require.ErrorIs(t, m.verify(t.Context(), 2), ErrVerify)
	p.ep.dst.Bytes()[70] ^= 1
	require.ErrorIs(t, m.verify(t.Context(), 1), ErrVerify)
}

func TestRingCountersThatCannotBe(t *testing.T) {
	mem := shared(t, ringSize)
	r := newRing(mem.mem)
	r.head.Store(ringBytes + 1)
	_, err := r.take(make([]byte, 8))
	require.ErrorIs(t, err, errRing)

	r.tail.Store(ringBytes + 7) // more than is written when the writer looks
	require.ErrorIs(t, newRing(mem.mem).put(make([]byte, ringBytes+1)), errRing)
	w := newRing(mem.mem)
	require.NoError(t, w.put(make([]byte, 8)))
	require.ErrorIs(t, w.drained(), errRing)
}

func TestRingWaitingGivesUp(t *testing.T) {
	mem := shared(t, ringSize)
	r := newRing(mem.mem)
	r.quit.Store(true)
	_, err := r.take(make([]byte, 8))
	require.ErrorContains(t, err, "given up")
	require.ErrorContains(t, r.put(make([]byte, ringBytes+1)), "given up")
	require.ErrorContains(t, r.drained(), "given up")
}

// A peer maps nothing but a ring, and nothing at all for a stranger.
func TestPeerMapsOnlyRings(t *testing.T) {
	s, p := opened(t, small(t))
	ask := func(spec shmSpec) error {
		_, err := s.call(t.Context(), &request{Do: doShmOpen, Shm: &spec})
		return err
	}
	mem := shared(t, ringSize)
	require.ErrorContains(t, ask(shmSpec{Size: 64, PID: os.Getpid(), FD: mem.fd()}), "anybody can reach")
	p.trusted = true
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(ringSize))
	short := shared(t, ringSize/2)
	for name, spec := range map[string]shmSpec{
		"a file":           {Size: 64, PID: os.Getpid(), FD: int(f.Fd())},
		"another length":   {Size: 64, PID: os.Getpid(), FD: short.fd()},
		"nothing":          {Size: 64, PID: os.Getpid(), FD: 1 << 20},
		"no size":          {PID: os.Getpid(), FD: mem.fd()},
		"beyond a message": {Size: MaxMessage + 1, PID: os.Getpid(), FD: mem.fd()},
	} {
		require.ErrorIs(t, ask(spec), ErrPeer, name)
	}
	for _, do := range []verb{doShmStart, doShmTake, doShmDone, doShmClose} {
		_, err := s.call(t.Context(), &request{Do: do})
		require.ErrorIs(t, err, ErrPeer, do)
	}
	require.NoError(t, ask(shmSpec{Size: 64, PID: os.Getpid(), FD: mem.fd()}))
	require.Error(t, ask(shmSpec{Size: 64, PID: os.Getpid(), FD: mem.fd()}), "once")
	_, err = s.call(t.Context(), &request{Do: doShmTake, Shm: &shmSpec{Size: 64}})
	require.ErrorContains(t, err, "does not run")
}
