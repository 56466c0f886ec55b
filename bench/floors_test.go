package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// brief is a run of goals that shows that they work, and no more.
func brief(t *testing.T) Config {
	t.Helper()
	cfg := small(t)
	return Config{Local: cfg.Local, InProcess: true, Rounds: 2, Duration: minSlice, Seed: 1}
}

func named(t *testing.T, names ...string) []Goal {
	t.Helper()
	goals, err := GoalsNamed(names)
	require.NoError(t, err)
	return goals
}

func TestGoalsHaveNamesAndSense(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range Goals() {
		require.False(t, seen[g.Name], g.Name)
		seen[g.Name] = true
		require.NotEmpty(t, g.What)
		require.True(t, g.reached(g.Aim, g.Floor), "%s: the aim reaches the floor", g.Name)
		require.Len(t, named(t, g.Name), 1)
	}
	require.Len(t, named(t, "latency-"), 4)
	require.Len(t, named(t), len(Goals()))
	_, err := GoalsNamed([]string{"write-1m", "nosuch"})
	require.ErrorIs(t, err, ErrFlag)
	require.ErrorContains(t, err, `goal "nosuch": allowed: write-16m, write-1m, `)
}

func TestVerdicts(t *testing.T) {
	least, most := Goal{Floor: 0.6, Aim: 0.85}, Goal{Floor: 0.6, Aim: 0.4, AtMost: true}
	for _, c := range []struct {
		g    *Goal
		v    float64
		want string
	}{
		{&least, 0.9, VerdictAim},
		{&least, 0.85, VerdictAim},
		{&least, 0.84, VerdictFloor},
		{&least, 0.59, VerdictShort},
		{&most, 0.4, VerdictAim},
		{&most, 0.41, VerdictFloor},
		{&most, 0.61, VerdictShort},
	} {
		require.Equal(t, c.want, c.g.verdict(&Measured{Median: c.v}), c)
	}
}

// Each pass has to reach a goal, whatever the median of all rounds is.
func TestVerdictOfTheWorstPass(t *testing.T) {
	least, most := Goal{Floor: 0.4, Aim: 0.55}, Goal{Floor: 1.6, Aim: 1.2, AtMost: true}
	pass := func(v ...float64) *Measured {
		m := found(v)
		m.sides(v, []float64{1}, "GB/s")
		m.OurRounds = make([]Round, len(v))
		return &m
	}
	m := (&Measured{}).merge(pass(0.6, 0.7, 0.8))
	require.Empty(t, m.Passes)
	require.Equal(t, VerdictAim, least.verdict(&m))
	m = m.merge(pass(0.3, 0.34, 0.9))
	require.Equal(t, []float64{0.7, 0.34}, m.Passes)
	require.InDelta(t, 0.65, m.Median, 1e-9)
	require.Equal(t, []float64{0.3, 0.9, 6, 6}, []float64{m.Min, m.Max, float64(m.Rounds), float64(len(m.OurRounds))})
	require.InDelta(t, 0.65, m.Ours, 1e-9)
	require.Equal(t, VerdictShort, least.verdict(&m))
	require.Equal(t, VerdictAim, most.verdict(&m))
	m = m.merge(pass(1.3))
	require.Len(t, m.Passes, 3)
	require.Equal(t, VerdictFloor, most.verdict(&m))

	g := GoalResult{Goal: least, Measured: *pass(0.5), Verdict: VerdictFloor}
	g.again(&GoalResult{Goal: least, Verdict: VerdictNone, Why: "the server ended"})
	require.Equal(t, []string{VerdictNone, "the server ended"}, []string{g.Verdict, g.Why})
}

// A round is disturbed when threads that never sleep had no processor.
func TestDisturbedRoundsAreTold(t *testing.T) {
	r := goldenGoals()
	require.Empty(t, r.disturbed())
	calm := Round{Elapsed: time.Second, Strain: Strain{Waited: 90 * time.Millisecond}}
	busy := Round{Elapsed: time.Second, Strain: Strain{Waited: 110 * time.Millisecond}}
	r.Goals[0].OurRounds = []Round{calm, busy, calm}
	r.Goals[0].TheirRounds = []Round{busy, busy, busy}
	require.Contains(t, r.disturbed(), "in 1 of 3 rounds")
}

// Each kind of goal is measured and verified.
func TestRunGoals(t *testing.T) {
	goals := named(t, "write-1m", "latency-tcp-8", "faa-write", "allocs", "mtu-1024")
	cfg := brief(t)
	cfg.Passes = 2
	var p steps
	r, err := RunGoals(t.Context(), cfg, goals, &p)
	require.NoError(t, err)
	require.Equal(t, []int{10, 10}, []int{p.total, p.done})
	require.Len(t, r.Goals, len(goals))
	for i, g := range r.Goals {
		require.Equal(t, goals[i].Name, g.Name)
		require.NotEqual(t, VerdictNone, g.Verdict)
		require.Equal(t, 4, g.Rounds)
		require.Len(t, g.Passes, 2)
		require.LessOrEqual(t, g.Min, g.Median)
		require.LessOrEqual(t, g.Median, g.Max)
		if g.Unit == "" {
			require.Positive(t, g.Min, g.Name)
			require.Positive(t, g.Ours)
			require.Positive(t, g.Theirs)
		}
	}
	require.Contains(t, r.TCP, "TCP_NODELAY")
}

func TestIdleShareIsOfACore(t *testing.T) {
	s, _ := opened(t, small(t))
	share, err := idleShare(t.Context(), s, 50*time.Millisecond)
	require.NoError(t, err)
	require.Less(t, share, 2.0)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err = idleShare(ctx, s, time.Hour)
	require.ErrorIs(t, err, why)
}

// What a goal is compared with may be missing, or fail; the others are measured.
func TestGoalsWithoutTheirProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	goals := named(t, "write-ucx")
	r, err := RunGoals(t.Context(), brief(t), goals, nil)
	require.NoError(t, err)
	require.Equal(t, VerdictNone, r.Goals[0].Verdict)
	require.Equal(t, "not installed: package ucx-utils", r.Goals[0].Why)

	if canIsolate() != "" {
		return
	}
	exe := childCommand(t, "leave")[0]
	require.NoError(t, os.Symlink(exe, filepath.Join(dir, ucxPut.file)))
	r, err = RunGoals(t.Context(), brief(t), goals, nil)
	require.NoError(t, err)
	require.Equal(t, VerdictNone, r.Goals[0].Verdict)
	require.Contains(t, r.Goals[0].Why, "ucx_perftest: the server ended")
}

func TestInterruptedGoalsTellWhatIsFinished(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	n := 0
	r, err := RunGoals(ctx, brief(t), named(t, "allocs", "write-1m"), onEveryStep(func() {
		if n++; n == 2 {
			cancel(why)
		}
	}))
	require.ErrorIs(t, err, why)
	require.Len(t, r.Goals, 1)
}

func goldenGoals() *GoalsReport {
	goals := []Goal{
		{Name: "a-b", What: "a against b", Floor: 0.6, Aim: 0.85},
		{Name: "cost", What: "what it costs", Floor: 1, Aim: 0, AtMost: true, Unit: "objects"},
		{Name: "c-ucx", What: "c against ucx", Floor: 7, Aim: 10},
	}
	return &GoalsReport{
		Rounds: 7, Passes: 2, Duration: "1s", Seed: 5, Mode: modeProcesses, TCP: "Go net, TCP_CONGESTION=cubic",
		Goals: []GoalResult{
			{Goal: goals[0], Measured: Measured{Median: 0.7, Min: 0.5, Max: 0.9, Rounds: 7, Ours: 3.5, Theirs: 5, SideUnit: "GB/s", Passes: []float64{0.65, 0.75}}, Verdict: VerdictFloor},
			{Goal: goals[1], Measured: Measured{Median: 2, Min: 1, Max: 3, Rounds: 7}, Verdict: VerdictShort},
			{Goal: goals[2], Verdict: VerdictNone, Why: "not installed: package ucx-utils"},
		},
	}
}

func TestGoalsOutputsGolden(t *testing.T) {
	r := goldenGoals()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"goals.json": func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"goals.txt":  func(b *bytes.Buffer) error { return r.WriteTable(b) },
		"goals.md":   func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, write(&b))
			checkGolden(t, name, bytes.ReplaceAll(b.Bytes(), []byte(Machine()), []byte("A machine")))
		})
	}
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back GoalsReport
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, r, &back)
}

func TestCompareIsByRound(t *testing.T) {
	mk := func(gb ...uint64) *series {
		s := newSeries()
		for _, g := range gb {
			s.add(sample{bytes: g * 1e9, messages: g * 1e6, elapsed: time.Second, cpu: time.Second}, newHistogram(), usage{})
		}
		return s
	}
	got := compare(byBandwidth, mk(1, 2, 6), mk(2, 2, 2))
	require.Equal(t, []float64{1, 0.5, 3, 3, 2, 2}, []float64{got.Median, got.Min, got.Max, float64(got.Rounds), got.Ours, got.Theirs})
	require.Equal(t, "GB/s", got.SideUnit)
	require.Len(t, got.OurRounds, 3)
	require.InDelta(t, 6, got.OurRounds[2].GBPerS, 1e-9)
	require.Len(t, got.TheirRounds, 3)
	require.InDelta(t, 1.0/3, compare(byCPU, mk(6), mk(2)).Median, 1e-9)
	require.InDelta(t, 3, compare(byMessages, mk(6), mk(2)).Median, 1e-9)

	h := newHistogram()
	h.add(10 * time.Microsecond)
	s := newSeries()
	s.add(sample{}, h, usage{})
	require.InDelta(t, 5, byLatency.of(s.samples[0]), 0.01, "half of there and back")
}

// TestProcessorTime asks for it by itself, without what all queue pairs have to say;
// in one process it is counted once.
func TestProcessorTime(t *testing.T) {
	s, _ := opened(t, small(t))
	before, err := s.cpu(t.Context())
	require.NoError(t, err)
	for processCPU() < before+5*time.Millisecond {
		processMallocs() // something that takes time
	}
	after, err := s.cpu(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, after-before, 5*time.Millisecond)
}
