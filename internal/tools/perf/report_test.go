package perf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// The lines of the recorded runs, to the letter.
func TestTables(t *testing.T) {
	bw := Config{Test: writeBW}
	require.Equal(t, " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n", bw.head())
	require.Equal(t, " 2048       5                1.81               1.70   \t\t   0.000869\n",
		bwReport{2048, 5, 1.8138, 1.6967, 0.000869}.line(false))
	require.Equal(t, " 2048       5                1.97               1.97   \t\t   0.001008\n",
		bwReport{2048, 5, 1.19, 1.19, 0.00061}.add(bwReport{2048, 5, 0.78, 0.78, 0.000398}).line(false))
	bw.Gbits = true
	require.Equal(t, " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n", bw.head())
	require.Equal(t, " 8          5           0.000000            0.012346            0.200000\n", bwReport{8, 5, 0, 0.0123456, 0.2}.line(true))

	lat := Config{Test: sendLat}
	require.Equal(t, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n", lat.head())
	require.Equal(t, " 2048    5          5231.28        9174.23      5262.17  \t       5262.17     \t30.00  \t\t9174.23 \t\t9174.23\n",
		latReport{2048, 5, 5231.28, 9174.23, 5262.17, 5262.17, 30, 9174.23, 9174.23}.line())
	lat.Duration = time.Second
	require.Equal(t, " #bytes        #iterations       t_avg[usec]    tps average\n", lat.head())
	e := &engine{cfg: &lat, size: 2}
	e.time = clock{duration: 4 * time.Second, counted: 1000}
	require.Equal(t, " 2             1000            1000.00        500.00 \n", e.durationLine())
}

func TestLatency(t *testing.T) {
	var at rounds
	for i := range 1001 {
		at = append(at, time.Duration(i)*20*time.Microsecond)
	}
	at[1000] += time.Millisecond
	r := latency(2, 1001, at, 2)
	require.Equal(t, 10.0, r.min)
	require.Equal(t, 510.0, r.max)
	require.Equal(t, 10.0, r.typical)
	require.InDelta(t, 10.5, r.average, 1e-9)
	require.InDelta(t, 15.8, r.deviation, 0.01)
	require.Equal(t, 10.0, r.p99)
	require.Equal(t, 10.0, r.p999)
	require.Equal(t, 20.0, latency(2, 2, at[:2], 1).min)
	require.Zero(t, latency(2, 1, at[:1], 1).max)
}

func TestBandwidthReport(t *testing.T) {
	cfg := Config{Test: writeBW, Duration: 0}
	e := &engine{cfg: &cfg, size: 1 << 20}
	start := time.Unix(100, 0)
	e.time.countSent, e.time.peak = true, &peak{mod: 1}
	e.time.begin(start)
	e.time.peak.posted(4, 0)
	for i := 1; i <= 4; i++ {
		at := time.Duration(i) * time.Second
		if i == 4 {
			at = 3500 * time.Millisecond // the last came fast
		}
		e.time.completed(1, start.Add(at))
	}
	r := e.bandwidth()
	require.EqualValues(t, 4, r.iters)
	require.InDelta(t, 4/3.5, r.average, 1e-9)
	require.InDelta(t, 4/3.5, r.peak, 1e-9)
	require.InDelta(t, 4/3.5/1e6, r.rate, 1e-15)
	cfg.Gbits = true
	require.InDelta(t, 4/3.5*8*(1<<20)/1e9, e.bandwidth().average, 1e-9)
}

// What lies in the first and last quarter of a duration does not count.
func TestDurationClock(t *testing.T) {
	c := clock{duration: 4 * time.Second, countSent: true}
	start := time.Unix(100, 0)
	c.begin(start)
	for i := range 41 {
		c.completed(10, start.Add(time.Duration(i)*100*time.Millisecond))
	}
	require.EqualValues(t, 210, c.counted)
	require.Equal(t, 2*time.Second, c.elapsed())
	require.True(t, c.expired())
}

// The fastest stretch: from a post to a completion, per message.
func TestPeak(t *testing.T) {
	p := peak{mod: 2}
	p.posted(2, 0)
	p.completed(2, 10*time.Second)
	p.posted(2, 10*time.Second)
	p.completed(2, 12*time.Second)
	require.Equal(t, time.Second, p.perMessage())
	require.Zero(t, (&peak{mod: 1}).perMessage())
}

func TestOptions(t *testing.T) {
	for want, cfg := range map[string]Config{
		"-s here cannot work: an atomic has 8": {Test: atomBW, Size: 9},
		"-a here":                              {Test: atomBW, All: true},
		"-q here":                              {Test: sendLat, QPs: 2},
		"-b here":                              {Test: sendLat, Bidirectional: true},
		"-D here":                              {Duration: time.Second, All: true},
		"-c here cannot work: READs":           {Test: readBW, Connection: hixl.UC},
		"-c here cannot work: a write":         {Test: writeBW, Connection: hixl.UD},
		"-R here cannot work: RC or UD: UC is": {CM: true, Connection: hixl.UC},
		"-I here":                              {Test: readBW, Inline: 5},
		"-I 257":                               {Inline: 257},
		"-s 1073741825":                        {Size: MaxSize + 1},
		"-n -1":                                {Iters: -1},
		"-q 1025":                              {QPs: 1025},
		"-t 15001":                             {TxDepth: 15001, Iters: 20000},
		"-r 16001":                             {Test: sendBW, RxDepth: 16001, Iters: 20000},
		"-o 129":                               {Test: readBW, Outs: 129},
		"-Q 1025":                              {CQMod: 1025},
		"-u 32":                                {Timeout: 32},
		"-T 256":                               {TrafficClass: 256},
		"-m 1500":                              {MTU: 1500},
	} {
		err := cfg.fill()
		require.ErrorIs(t, err, tools.ErrOption, want)
		require.ErrorContains(t, err, want)
	}
}

// The depths and moderation that perftest chooses.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		cfg                Config
		iters, tx, rx, mod int
		noPeak             bool
	}{
		{Config{}, 5000, 128, 512, 100, false},
		{Config{Size: 65536}, 5000, 128, 512, 1, false},
		{Config{Size: 8192, Iters: 50}, 50, 50, 50, 50, false},
		{Config{All: true}, 5000, 128, 512, 100, false},
		{Config{Test: sendBW, Connection: hixl.UD, Size: 1000}, 1000, 128, 1000, 100, true},
		{Config{Test: sendBW, Connection: hixl.UC, Size: 100, RxDepth: 10, Iters: 30000}, 30000, 128, 10, 100, true},
		{Config{Test: sendLat}, 1000, 1, 512, 1, true},
		{Config{Duration: time.Second, CQMod: 7, Size: 1 << 20}, 5000, 128, 512, 7, true},
	} {
		cfg := c.cfg
		require.NoError(t, cfg.fill())
		require.Equal(t, []any{c.iters, c.tx, c.rx, c.mod, c.noPeak}, []any{cfg.Iters, cfg.TxDepth, cfg.RxDepth, cfg.cqMod(), cfg.NoPeak}, "%+v", c.cfg)
	}
}

func TestSizes(t *testing.T) {
	all, err := (&Config{All: true}).sizes(1024)
	require.NoError(t, err)
	require.Len(t, all, 23)
	require.Equal(t, 1<<23, all[22])
	all, err = (&Config{All: true, Connection: hixl.UD}).sizes(1024)
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, all)
	one, err := (&Config{Test: sendBW, Connection: hixl.UD}).sizes(2048)
	require.NoError(t, err)
	require.Equal(t, []int{2048}, one)
	_, err = (&Config{Size: 1025, Connection: hixl.UD}).sizes(1024)
	require.ErrorContains(t, err, "a datagram holds at most the path MTU, 1024 bytes here")
}

// The places of the recorded ib_write_bw and ib_atomic_bw.
func TestLayout(t *testing.T) {
	l := newLayout(&Config{QPs: 2}, terms{page: 4096, line: 64}, 2048)
	w := l.walk(2048)
	require.Equal(t, []int{0, 2048, 0}, []int{w.at(0), w.at(1), w.at(2)})
	w = l.walk(8)
	require.Equal(t, []int{0, 64, 128, 4032, 0}, []int{w.at(0), w.at(1), w.at(2), w.at(63), w.at(64)})
	require.Equal(t, 1, l.walk(2049).count)
	require.Equal(t, 4*4096, l.size())
	require.Equal(t, 3*4096, l.shared(1))
	ud := newLayout(&Config{QPs: 1, Connection: hixl.UD}, terms{page: 4096, line: 64}, 4096)
	require.Equal(t, 8192, ud.area)
	require.Equal(t, 128, ud.recvWalk(64).stride)
}

// A byte out of place is found, wherever it is.
func TestComparer(t *testing.T) {
	area := make([]byte, 1<<17)
	pattern(area, 7, 3)
	known := comparer{seed: 7, known: true}
	require.NoError(t, known.messages(area, 3, 1000, steps{1024, 4}, 0, 9, false))
	require.ErrorIs(t, known.messages(area, 2, 1000, steps{1024, 4}, 0, 9, false), tools.ErrData)
	require.ErrorContains(t, known.messages(area[1:], 3, 1000, steps{1024, 4}, 0, 9, false), "queue pair 4, 1000 bytes at 0: byte 0 of 1000 is")
	area[3*1024+999] ^= 1
	require.ErrorContains(t, known.messages(area, 3, 1000, steps{1024, 4}, 0, 9, false), "1000 bytes at 3072: byte 999 of 1000")
	require.NoError(t, known.messages(area, 3, 1000, steps{1024, 4}, 0, 3, false), "only three came")

	unknown := comparer{}
	require.NoError(t, unknown.message("x", area[:8], 0, 0))
	fill(area, canary)
	require.ErrorContains(t, unknown.message("x", area[:8], 0, 0), "nothing arrived")
	require.NoError(t, unknown.message("x", area[:7], 0, 0), "could be chance")
}

// A result that does not follow from the one before, at the right message.
func TestAtomicCheck(t *testing.T) {
	results := make([]byte, 4*atomicSize)
	a := atomicCheck{where: "here", results: results, depth: 4, places: 2, last: make([]uint64, 2), step: 1}
	set := func(k int, v byte) { results[k%4*atomicSize] = v }
	set(0, 10)
	set(1, 90)
	set(2, 11)
	set(3, 91)
	require.NoError(t, a.look(0, 4))
	set(4, 12)
	set(5, 91)
	require.NoError(t, a.look(4, 5))
	require.ErrorContains(t, a.look(5, 6), "atomic 6 of here: returned 0x5b, not 0x5c")
}
