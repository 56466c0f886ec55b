package bench

import (
	"cmp"
	"slices"
	"time"
)

// Report is what a run found; its JSON form is the output of `hixl-bench --json`.
type Report struct {
	Config    ReportConfig     `json:"config"`
	Results   []Result         `json:"results"`
	Baselines []BaselineResult `json:"baselines"`
	Ratios    []Ratio          `json:"ratios"`
	// Missing are the baselines asked for that could not run.
	Missing []Missing `json:"missing,omitempty"`
	// Interrupted: the run was ended before its time. What is here was measured and
	// verified, in fewer rounds than asked for, and the rest is missing.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ReportConfig says how the run was made.
type ReportConfig struct {
	Ops       []Op       `json:"op"`
	Sizes     []int      `json:"size"`
	QPs       []int      `json:"qps"`
	Depths    []int      `json:"depth"`
	MTUs      []int      `json:"mtu"`
	Duration  string     `json:"duration"`
	Rounds    int        `json:"rounds"`
	Baselines []Baseline `json:"baseline"`
	Region    int        `json:"region"`
	Seed      uint64     `json:"seed"`
	Faults
	// Local and Peer are the RoCE addresses, Mode says where the peer runs.
	Local string `json:"local"`
	Peer  string `json:"peer"`
	Mode  string `json:"mode"`
	// Machine is the processor, the system and Go, of this side.
	Machine string `json:"machine,omitempty"`
	// Pinned are the cores of this process and of the peer's; empty: not pinned.
	Pinned []string `json:"pinned,omitempty"`
	// Transport carries the packets; NoTrains: each on its own.
	Transport string `json:"transport"`
	NoTrains  bool   `json:"no_trains,omitempty"`
	// Shards is how many sockets of each NIC receive, 0 is the default.
	Shards int `json:"shards,omitempty"`
	// LowLatency: the NICs' Progress was hixl.LowLatency on both sides.
	LowLatency bool `json:"low_latency,omitempty"`
	// Memory and PeerMemory say what the two sides' regions are, where it is not host
	// memory on both.
	Memory     string `json:"memory,omitempty"`
	PeerMemory string `json:"peer_memory,omitempty"`
	// TCP says how the baseline's connection was set up.
	TCP string `json:"tcp,omitempty"`
	// ForeignTCP is the congestion control that foreign programs' connections use.
	ForeignTCP string `json:"foreign_tcp,omitempty"`
	// LatencyIs says what lat_us counts.
	LatencyIs string `json:"latency_is"`
}

// The modes.
const (
	modeProcesses = "two processes"
	modeInProcess = "one process"
	modeRemote    = "remote peer"
)

// newReport returns a report of nothing yet.
func newReport(c Config) *Report {
	return &Report{Config: reportConfig(c), Results: []Result{}, Baselines: []BaselineResult{}, Ratios: []Ratio{}, Missing: c.missing}
}

// latencyIs explains lat_us in every report.
const latencyIs = "whole operation, post to completion, one outstanding; one way is about half"

func reportConfig(c Config) ReportConfig {
	return ReportConfig{
		Ops: c.Ops, Sizes: c.Sizes, QPs: c.QPs, Depths: c.Depths, MTUs: c.MTUs,
		Duration: c.Duration.String(), Rounds: c.Rounds, Baselines: c.Baselines,
		Region: c.Region, Seed: c.Seed, Faults: c.Faults, LatencyIs: latencyIs, Transport: cmp.Or(c.Transport, "udp"), NoTrains: c.NoTrains, Shards: c.Shards,
		Pinned: c.placed.lists(), LowLatency: c.LowLatency,
	}
}

// Result is one cell. Rates are the median of the rounds, the latencies those
// of all rounds together; CPU and retransmissions are of both sides.
type Result struct {
	Op    Op  `json:"op"`
	Size  int `json:"size"`
	QPs   int `json:"qps"`
	Depth int `json:"depth"`
	MTU   int `json:"mtu,omitempty"`
	// Walks is how many bytes of source and of destination messages walk through.
	Walks       int     `json:"walks"`
	GBPerS      float64 `json:"gb_per_s"`
	MsgsPerS    float64 `json:"msgs_per_s"`
	LatencyUS   Latency `json:"lat_us"`
	CPUPerGB    float64 `json:"cpu_s_per_gb"`
	Retransmits uint64  `json:"retransmits"`
	Causes
	Verified bool `json:"verified"`
	// Rounds are what the medians are of.
	Rounds []Round `json:"rounds,omitempty"`
}

// BaselineResult is one baseline at one size; the median of the rounds.
type BaselineResult struct {
	Name     Baseline `json:"name"`
	Size     int      `json:"size"`
	Walks    int      `json:"walks"`
	GBPerS   float64  `json:"gb_per_s"`
	CPUPerGB float64  `json:"cpu_s_per_gb"`
	// LatencyUS is there and back: for tcp, the time of a message and an 8-byte
	// answer; for foreign programs twice what they call a message's latency, with
	// p50 alone.
	LatencyUS *Latency `json:"lat_us,omitempty"`
	Rounds    []Round  `json:"rounds,omitempty"`
}

// Ratio is the bandwidth of a cell against that of a baseline moving the same
// size, taken round by round. QPs, Depth and MTU are set when a run has several.
type Ratio struct {
	Op      Op       `json:"op"`
	Size    int      `json:"size"`
	QPs     int      `json:"qps,omitempty"`
	Depth   int      `json:"depth,omitempty"`
	MTU     int      `json:"mtu,omitempty"`
	Against Baseline `json:"against"`
	Median  float64  `json:"median"`
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Rounds  int      `json:"rounds"`
	// Latency is the same of the latencies, there and back; nil where one of the two
	// has none. Less is better.
	Latency *Spread `json:"latency,omitempty"`
}

// Spread is what was found round by round.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

// spread is of one figure a round, nil of none.
func spread(v []float64) *Spread {
	if len(v) == 0 {
		return nil
	}
	return &Spread{Median: median(v), Min: slices.Min(v), Max: slices.Max(v), Rounds: len(v)}
}

// sample is one timed bandwidth part.
type sample struct {
	messages, bytes uint64
	elapsed, cpu    time.Duration
	// oneWay is half of the round's median latency, 0 when it has none.
	oneWay time.Duration
	// mallocs are the objects allocated meanwhile.
	mallocs uint64
	spent   usage
}

// gbPerS is the rate in 1e9 bytes a second: bytes a nanosecond.
func (s sample) gbPerS() float64 { return per(float64(s.bytes), float64(s.elapsed)) }

func (s sample) cpuPerGB() float64 { return per(s.cpu.Seconds()*1e9, float64(s.bytes)) }

func (s sample) msgsPerS() float64 { return per(float64(s.messages), s.elapsed.Seconds()) }

// series is the samples of one cell or baseline, one a round.
type series struct {
	samples     []sample
	hist        histogram
	retransmits uint64
	causes      Causes
}

func newSeries() *series { return &series{hist: newHistogram()} }

// add adds a round and what was spent in it.
func (s *series) add(x sample, h histogram, u usage) {
	if h.h.TotalCount() > 0 {
		x.oneWay = time.Duration(h.h.ValueAtQuantile(50) / 2)
	}
	s.samples = append(s.samples, x)
	s.hist.merge(h)
	s.retransmits += u.Retransmits
	s.causes = s.causes.add(u.Causes)
}

func (s *series) gb() []float64 { return each(s.samples, sample.gbPerS) }

// cpuPerGB is all CPU time over all bytes.
func (s *series) cpuPerGB() float64 {
	var cpu time.Duration
	var bytes uint64
	for _, x := range s.samples {
		cpu += x.cpu
		bytes += x.bytes
	}
	return per(cpu.Seconds()*1e9, float64(bytes))
}

func (s *series) result(ce cell) Result {
	return Result{
		Op: ce.Op, Size: ce.Size, QPs: ce.QPs, Depth: ce.Depth,
		GBPerS: median(s.gb()), MsgsPerS: median(each(s.samples, sample.msgsPerS)),
		LatencyUS: s.hist.latency(), CPUPerGB: s.cpuPerGB(), Retransmits: s.retransmits, Causes: s.causes, Verified: true, Rounds: s.rounds(),
	}
}

// ratio compares two series round by round.
func ratio(ours, theirs *series) (r Ratio) {
	var rates, times []float64
	for i := range min(len(ours.samples), len(theirs.samples)) {
		a, b := ours.samples[i], theirs.samples[i]
		rates = append(rates, per(a.gbPerS(), b.gbPerS()))
		if a.oneWay > 0 && b.oneWay > 0 {
			times = append(times, per(float64(a.oneWay), float64(b.oneWay)))
		}
	}
	if s := spread(rates); s != nil {
		r = Ratio{Median: s.Median, Min: s.Min, Max: s.Max, Rounds: s.Rounds, Latency: spread(times)}
	}
	return r
}

// median returns the middle value, the mean of the two middle ones, or 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Clone(v)
	slices.SortFunc(s, cmp.Compare[float64])
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// per divides, with nothing by nothing being nothing.
func per(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func each[T, U any](v []T, f func(T) U) []U {
	out := make([]U, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}
