package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept from 1 ns to maxLatency with three digits.
const (
	maxLatency    = time.Minute
	latencyDigits = 3
)

// histogram collects latencies of one operation. Recording allocates nothing.
type histogram struct{ h *hdrhistogram.Histogram }

func newHistogram() histogram {
	return histogram{hdrhistogram.New(1, int64(maxLatency), latencyDigits)}
}

// add records one latency; what is outside the range counts as its end.
func (h histogram) add(d time.Duration) {
	_ = h.h.RecordValue(int64(min(max(d, 1), maxLatency))) // in range, so it cannot fail
}

// merge adds the latencies of another histogram.
func (h histogram) merge(other histogram) { h.h.Merge(other.h) }

// Latency is a distribution of operation latencies in microseconds, from before
// the post to the completion in hand.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

func (h histogram) latency() Latency {
	us := func(q float64) float64 { return float64(h.h.ValueAtQuantile(q)) / 1e3 }
	return Latency{P50: us(50), P99: us(99), P999: us(99.9)}
}
