package perf

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Units of the reports, in bytes a second.
const (
	mib = 1 << 20
	gb  = 125_000_000 // Gb/s
)

// bwReport is the result of a bandwidth run at one end, as it is exchanged.
type bwReport struct {
	size, iters         uint64
	peak, average, rate float64 // MiB/s or Gb/s, and million messages a second
}

// bandwidth makes the report of a run.
func (e *engine) bandwidth() bwReport {
	unit := float64(mib)
	if e.cfg.Gbits {
		unit = gb
	}
	seconds, n := e.time.elapsed().Seconds(), float64(e.time.counted)
	r := bwReport{
		size: uint64(e.size), iters: e.time.counted,
		average: n * float64(e.size) / seconds / unit, rate: n / seconds / 1e6,
	}
	if p := e.time.peak; p != nil {
		if t := p.perMessage(); t > 0 {
			r.peak = float64(e.size) / t.Seconds() / unit
		}
	}
	return r
}

// add is the report of both directions together.
func (r bwReport) add(o bwReport) bwReport {
	r.peak += o.peak
	r.average += o.average
	r.rate += o.rate
	return r
}

// words are its five messages.
func (r bwReport) words() [5]uint64 {
	return [5]uint64{r.size, r.iters, math.Float64bits(r.peak), math.Float64bits(r.average), math.Float64bits(r.rate)}
}

var reportSteps = [5]string{"report of the size", "report of the iterations", "report of the peak", "report of the average", "report of the rate"}

// swapReport exchanges reports. A side that measured nothing gives zeros; what
// the original gives then is not initialised.
func (c *control) swapReport(ctx context.Context, mine bwReport) (theirs bwReport, err error) {
	var w [5]uint64
	for i, v := range mine.words() {
		m, t := binary.BigEndian.AppendUint64(nil, v), make([]byte, 8)
		if err := c.swap(ctx, reportSteps[i], m, t); err != nil {
			return theirs, err
		}
		w[i] = binary.BigEndian.Uint64(t)
	}
	f := math.Float64frombits
	return bwReport{size: w[0], iters: w[1], peak: f(w[2]), average: f(w[3]), rate: f(w[4])}, nil
}

// Lines of the tables, perftest's to the letter.
const (
	ruler   = "---------------------------------------------------------------------------------------\n"
	bwHead  = " #bytes     #iterations    BW peak[%s]    BW average[%[1]s]   MsgRate[Mpps]\n"
	bwLine  = " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n"
	bwFine  = " %-7d    %d           %-7.6f            %-7.6f            %-7.6f\n"
	latHead = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	latLine = " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n"
	durHead = " #bytes        #iterations       t_avg[usec]    tps average\n"
	durLine = " %-7d       %d            %-7.2f        %-7.2f\n"
)

// head is the first line of the table.
func (c *Config) head() string {
	switch {
	case c.Test.Kind == Bandwidth && c.Gbits:
		return fmt.Sprintf(bwHead, "Gb/sec")
	case c.Test.Kind == Bandwidth:
		return fmt.Sprintf(bwHead, "MB/sec")
	case c.Duration > 0:
		return durHead
	}
	return latHead
}

// line is its line of the table. Small numbers of Gb/s get more digits.
func (r bwReport) line(gbits bool) string {
	format := bwLine
	if gbits && r.average < 0.1 {
		format = bwFine
	}
	return fmt.Sprintf(format, r.size, r.iters, r.peak, r.average, r.rate)
}

// latReport is the result of a latency run, in µs.
type latReport struct {
	size, iters                                      int
	min, max, typical, average, deviation, p99, p999 float64
}

// latency makes a report of the moments of n posts, for a test whose round trips
// hold so many latencies.
func latency(size, iters int, at rounds, perTrip int) latReport {
	r := latReport{size: size, iters: iters}
	d := make([]float64, max(len(at)-1, 0))
	for i := range d {
		d[i] = float64(at[i+1]-at[i]) / float64(time.Microsecond) / float64(perTrip)
	}
	if len(d) == 0 {
		return r
	}
	slices.Sort(d)
	for _, v := range d {
		r.average += v / float64(len(d))
	}
	for _, v := range d {
		r.deviation += (v - r.average) * (v - r.average) / float64(len(d))
	}
	r.deviation = math.Sqrt(r.deviation)
	r.min, r.max, r.typical = d[0], d[len(d)-1], d[len(d)/2]
	r.p99, r.p999 = percentile(d, 0.99), percentile(d, 0.999)
	return r
}

// percentile of sorted values: the smallest that a part of them does not exceed.
func percentile(d []float64, part float64) float64 {
	return d[max(int(math.Ceil(part*float64(len(d))))-1, 0)]
}

func (r latReport) line() string {
	return fmt.Sprintf(latLine, r.size, r.iters, r.min, r.max, r.typical, r.average, r.deviation, r.p99, r.p999)
}

// durationLine is the line of a latency run that took a time.
func (e *engine) durationLine() string {
	n, t := float64(e.time.counted), e.time.elapsed().Seconds()
	return fmt.Sprintf(durLine, e.size, e.time.counted, t*1e6/float64(e.cfg.Test.perTrip())/max(n, 1), n/t)
}

// perTrip is how many latencies a round trip holds.
func (t Test) perTrip() int {
	if t.pulls() {
		return 1
	}
	return 2
}
