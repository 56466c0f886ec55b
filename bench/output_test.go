package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goldenReport is a report with every field set.
func goldenReport() *Report {
	cfg := Config{
		Ops: []Op{OpWrite, OpCAS}, Sizes: []int{64, 1 << 20}, Seed: 7, Region: 16 << 20, Duration: time.Second, Rounds: 3,
		Faults: Faults{Loss: 0.01},
	}.withDefaults()
	r := &Report{Config: reportConfig(cfg)}
	r.Config.Local, r.Config.Peer, r.Config.Mode = "127.0.0.1", "127.0.0.2", modeProcesses
	r.Config.TCP = "Go net, TCP_CONGESTION=cubic"
	r.Results = []Result{
		{Op: OpWrite, Size: 64, QPs: 1, Depth: 64, Walks: 16 << 20, GBPerS: 0.0213, MsgsPerS: 333000, LatencyUS: Latency{9.5, 30, 101.25}, CPUPerGB: 83.5, Retransmits: 3, Causes: Causes{RNRNAKs: 1, SeqNAKs: 2, Timeouts: 4, RxOverflow: 5}, Verified: true},
		{Op: OpWrite, Size: 1 << 20, QPs: 1, Depth: 8, GBPerS: 1.5, MsgsPerS: 1430.5, LatencyUS: Latency{700, 1200.5, 4000}, CPUPerGB: 1.1, Verified: true},
		{Op: OpCAS, Size: 8, QPs: 1, Depth: 64, GBPerS: 0.0012, MsgsPerS: 150000, LatencyUS: Latency{11, 40, 200}, CPUPerGB: 900, Verified: true},
	}
	r.Baselines = []BaselineResult{
		{Name: BaselineTCP, Size: 64, GBPerS: 0.06, CPUPerGB: 30, LatencyUS: &Latency{12, 35, 90}},
		{Name: BaselineTCP, Size: 1 << 20, GBPerS: 5, CPUPerGB: 0.35, LatencyUS: &Latency{300, 500, 900}},
		{Name: BaselineMemcpy, Size: 1 << 20, GBPerS: 9.75, CPUPerGB: 0.1},
	}
	r.Ratios = []Ratio{
		{Op: OpWrite, Size: 64, Against: BaselineTCP, Median: 0.355, Min: 0.3, Max: 0.4, Rounds: 3, Latency: &Spread{0.79, 0.7, 0.85, 3}},
		{Op: OpWrite, Size: 1 << 20, Against: BaselineTCP, Median: 0.3, Min: 0.25, Max: 0.31, Rounds: 3},
		{Op: OpWrite, Size: 1 << 20, Against: BaselineMemcpy, Median: 0.15, Min: 0.14, Max: 0.16, Rounds: 3},
	}
	r.Missing = []Missing{{BaselineUCX, "not installed: package ucx-utils"}}
	return r
}

// checkGolden compares with a file of testdata; -update rewrites it.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestOutputsGolden(t *testing.T) {
	r := goldenReport()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.json": func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"report.csv":  func(b *bytes.Buffer) error { return r.WriteCSV(b) },
		"report.txt":  func(b *bytes.Buffer) error { return r.WriteTable(b) },
		"compare.txt": func(b *bytes.Buffer) error { return r.WriteComparison(b) },
		"compare.md":  func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, write(&b))
			checkGolden(t, name, bytes.ReplaceAll(b.Bytes(), []byte(Machine()), []byte("A machine")))
		})
	}
}

func TestTableShowsWhatVaries(t *testing.T) {
	r := goldenReport()
	r.Config.QPs = []int{1, 2}
	r.Results[0].QPs = 2
	var b bytes.Buffer
	require.NoError(t, r.WriteTable(&b))
	require.Regexp(t, `(?m)^op +size +qps +depth +mtu +GB/s`, b.String())
	require.Regexp(t, `(?m)^write +64 +2 +64 +auto +0\.0213`, b.String())
}

func TestJSONShape(t *testing.T) {
	b, err := json.Marshal(goldenReport())
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	for _, k := range []string{"config", "results", "baselines", "ratios"} {
		require.Contains(t, m, k)
	}
	require.Len(t, m, 5, "and what is missing")
	result := m["results"].([]any)[0].(map[string]any)
	for _, k := range []string{"op", "size", "qps", "depth", "gb_per_s", "msgs_per_s", "lat_us", "cpu_s_per_gb", "retransmits", "verified", "walks", "rnr_naks", "seq_naks", "timeouts", "rx_overflow"} {
		require.Contains(t, result, k)
	}
	require.Len(t, result, 15)
	require.Len(t, result["lat_us"], 3)
	ratio := m["ratios"].([]any)[0].(map[string]any)
	for _, k := range []string{"op", "size", "against", "median", "min", "max", "rounds", "latency"} {
		require.Contains(t, ratio, k)
	}
	require.Len(t, ratio, 8)
	require.Len(t, ratio["latency"], 4)
	require.NotContains(t, m["ratios"].([]any)[1], "latency", "where one of the two has none")
}

// Under the table stands what makes packets be sent again, and what to do when
// receive buffers were full.
func TestTableTellsTheCauses(t *testing.T) {
	table := func(c Causes) string {
		r := goldenReport()
		r.Results[0].Causes = c
		var b bytes.Buffer
		require.NoError(t, r.WriteTable(&b))
		return b.String()
	}
	require.NotContains(t, table(Causes{}), "RNR")
	require.NotContains(t, table(Causes{RNRNAKs: 7}), "rmem_max")
	require.Contains(t, table(Causes{RNRNAKs: 7}), "7 RNR NAKs")
	require.Contains(t, table(Causes{RxOverflow: 7}), "sysctl -w net.core.rmem_max=16777216")
}

// Only those whose bytes were compared are said to be verified.
func TestVerifiedNamesThem(t *testing.T) {
	of := func(b ...Baseline) string { return (&Report{Config: ReportConfig{Baselines: b}}).verified() }
	require.Equal(t, "Every byte of ours was verified.\n", of())
	require.Equal(t, "Every byte of ours and tcp was verified.\n", of(BaselineTCP))
	require.Equal(t, "Every byte of ours, tcp, shm and memcpy was verified; what foreign programs moved was not.\n", of(AllBaselines()...))
}

func TestLabelsTellOfOneInFlight(t *testing.T) {
	require.Equal(t, []string{"tcp", "shm", "memcpy", "ucx", "ucx-get (1 in flight)", "iperf3", "libfabric (1 in flight)"}, each(AllBaselines(), Baseline.label))
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123", 0.01234: "0.0123", 0.001234: "0.0012",
		0.000987: "0.000987", 0.00003: "0.0000300", -0.5: "-0.5000",
	} {
		require.Equal(t, want, digits(v))
	}
	require.Equal(t, "1 round", plural(1, "round"))
	require.Equal(t, "0 rounds", plural(0, "round"))
}

func TestInterruptedIsToldOnlyThen(t *testing.T) {
	r := goldenReport()
	for _, interrupted := range []bool{false, true} {
		r.Interrupted = interrupted
		var j, table bytes.Buffer
		require.NoError(t, r.WriteJSON(&j))
		require.NoError(t, r.WriteTable(&table))
		require.Equal(t, interrupted, strings.Contains(j.String(), `"interrupted": true`))
		require.Equal(t, interrupted, strings.Contains(j.String(), "interrupted"))
		require.Equal(t, interrupted, strings.Contains(table.String(), "Interrupted: "))
	}
}

func TestEmptyListsAreListsInJSON(t *testing.T) {
	r := newReport(Config{}.withDefaults())
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(b), "null")
}

func TestRatioIsByRound(t *testing.T) {
	mk := func(gb ...uint64) *series {
		s := newSeries()
		for _, g := range gb {
			s.add(sample{bytes: g * 1e9, messages: g, elapsed: time.Second, cpu: time.Second}, newHistogram(), usage{Retransmits: 2, Causes: Causes{Timeouts: 1}})
		}
		return s
	}
	r := ratio(mk(1, 2, 6), mk(2, 2, 2))
	require.Equal(t, Ratio{Median: 1, Min: 0.5, Max: 3, Rounds: 3}, r)
	require.Equal(t, Ratio{}, ratio(mk(), mk(1)))

	// Latencies by round too, of the rounds in which both have one.
	timed := func(us ...int) *series {
		s := mk()
		for _, n := range us {
			h := newHistogram()
			if n > 0 {
				h.add(time.Duration(n) * time.Microsecond)
			}
			s.add(sample{bytes: 1, elapsed: 1}, h, usage{})
		}
		return s
	}
	l := ratio(timed(1, 10, 4), timed(2, 0, 1)).Latency
	require.InDeltaSlice(t, []float64{2.25, 0.5, 4, 2}, []float64{l.Median, l.Min, l.Max, float64(l.Rounds)}, 0.01)
	res := mk(1, 2, 6).result(newCell(0, OpWrite, 64, 1, 0, 0))
	require.InDelta(t, 2, res.GBPerS, 1e-9)
	require.InDelta(t, 3.0/9, res.CPUPerGB, 1e-9)
	require.EqualValues(t, 6, res.Retransmits)
	require.Equal(t, Causes{Timeouts: 3}, res.Causes)
}

func TestMedian(t *testing.T) {
	require.Zero(t, median(nil))
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

func TestHistogram(t *testing.T) {
	h := newHistogram()
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	h.add(-1)
	h.add(time.Hour)
	l := h.latency()
	require.InDelta(t, 500, l.P50, 2)
	require.InDelta(t, 990, l.P99, 2)
	require.InDelta(t, 1000, l.P999, 2)
	require.Zero(t, testing.AllocsPerRun(100, func() { h.add(time.Microsecond) }))
}
