package hixl

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// Trace records what a context's transfers took, and what was computed meanwhile, so
// that one sees where the time goes. It keeps the newest spans, and counts those it lost.
// All methods may be called from any goroutine, and of a nil Trace do nothing.
type Trace struct {
	clock func() mono.Time // set once

	mu    sync.Mutex
	spans []span // guarded by mu, as all below; a ring once it is full
	next  int
	lost  uint64
	first Time
}

// span is something that took time.
type span struct {
	name, peer string // no peer: it was computed
	from, to   Time
	bytes      uint64
	failed     bool
}

// StartTrace makes the context record the newest spans, at most so many (1 to
// 1<<24, of 100 bytes each), in a new trace, until StopTrace. A context that does not
// record pays nothing for it.
func (c *Context) StartTrace(spans int) *Trace {
	t := &Trace{clock: c.nic.nic.Now, spans: make([]span, 0, min(max(spans, 1), 1<<24)), first: c.nic.nic.Now()}
	c.trace.Store(t)
	return t
}

// StopTrace ends recording: what was begun before is still recorded. The trace can be
// read on.
func (c *Context) StopTrace() { c.trace.Store(nil) }

// Trace returns the trace that records, nil if none does.
func (c *Context) Trace() *Trace { return c.trace.Load() }

// Compute records that something is computed, from now until the function that it
// returns is called. Functions of [Stream.Call] are recorded by themselves.
func (t *Trace) Compute(name string) (end func()) {
	if t == nil {
		return func() {}
	}
	from := t.clock()
	return func() { t.add(span{name: name, from: from, to: t.clock()}) }
}

// transfer records a handle that ends.
func (t *Trace) transfer(h *Handle, now Time) {
	t.add(span{name: h.op.String(), peer: h.p.addr.String(), from: h.began, to: now, bytes: h.arrived.Load(), failed: h.err != nil})
}

func (t *Trace) add(s span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.spans) < cap(t.spans) {
		t.spans = append(t.spans, s)
		return
	}
	t.spans[t.next] = s
	t.next = (t.next + 1) % len(t.spans)
	t.lost++
}

// snapshot returns the spans by the time they began.
func (t *Trace) snapshot() (spans []span, lost uint64) {
	if t == nil {
		return nil, 0
	}
	t.mu.Lock()
	spans, lost = slices.Clone(t.spans), t.lost
	t.mu.Unlock()
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return spans, lost
}

// TraceReport says where the time of a trace went.
type TraceReport struct {
	// Wall is from the beginning of the first span to the end of the last.
	Wall time.Duration
	// Communication is how long transfers were under way, one at least; Computation,
	// how long something was computed; Hidden, how long both were: Hidden of
	// Communication cost nothing.
	Communication, Computation, Hidden time.Duration
	// Transfers ended, Failed of them without success; Bytes have arrived.
	Transfers, Failed, Bytes uint64
	// Lost spans were too many to be kept, and are not in this report.
	Lost uint64
}

// Overlap is the part of the communication that was hidden by computation, 0 to 1.
func (r TraceReport) Overlap() float64 {
	if r.Communication == 0 {
		return 0
	}
	return float64(r.Hidden) / float64(r.Communication)
}

// String tells it in one line.
func (r TraceReport) String() string {
	return fmt.Sprintf("%v: %d transfers (%d failed) of %d bytes took %v, computation %v, %.0f %% hidden", r.Wall, r.Transfers, r.Failed, r.Bytes, r.Communication, r.Computation, 100*r.Overlap())
}

// Report adds up what was recorded.
func (t *Trace) Report() TraceReport {
	spans, lost := t.snapshot()
	r := TraceReport{Lost: lost}
	var talk, work cover
	for i := range spans {
		s := &spans[i]
		r.Wall = max(r.Wall, s.to.Sub(spans[0].from))
		if s.peer == "" {
			work.add(s.from, s.to)
			continue
		}
		talk.add(s.from, s.to)
		r.Transfers++
		r.Bytes += s.bytes
		if s.failed {
			r.Failed++
		}
	}
	r.Communication, r.Computation, r.Hidden = talk.length(), work.length(), talk.common(&work)
	return r
}

// cover is the union of spans that are added by the time they began.
type cover []span

func (c *cover) add(from, to Time) {
	if n := len(*c); n > 0 && from <= (*c)[n-1].to {
		(*c)[n-1].to = max((*c)[n-1].to, to)
		return
	}
	*c = append(*c, span{from: from, to: to})
}

func (c *cover) length() (d time.Duration) {
	for _, s := range *c {
		d += s.to.Sub(s.from)
	}
	return d
}

// common is how long both cover.
func (c *cover) common(o *cover) (d time.Duration) {
	for i, j := 0, 0; i < len(*c) && j < len(*o); {
		a, b := &(*c)[i], &(*o)[j]
		if from, to := max(a.from, b.from), min(a.to, b.to); from < to {
			d += to.Sub(from)
		}
		if a.to < b.to {
			i++
		} else {
			j++
		}
	}
	return d
}

// traceEvent is a span as Chrome's trace viewer and Perfetto read it.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Proc  int            `json:"pid"`
	Lane  int            `json:"tid"`
	Start float64        `json:"ts"` // µs
	Dur   float64        `json:"dur"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteJSON writes the spans in the trace event format of Chrome, which its viewer
// and Perfetto show: a row for each peer, one for computation. Spans of one row that
// run at the same time are put on rows of their own.
func (t *Trace) WriteJSON(w io.Writer) error {
	spans, _ := t.snapshot()
	b := bufio.NewWriter(w)
	_, _ = b.WriteString(`{"traceEvents":[`)
	var ends []Time // of each row
	var rows []string
	for i := range spans {
		s := &spans[i]
		row := 0
		for row < len(ends) && (rows[row] != s.peer || ends[row] > s.from) {
			row++
		}
		if row == len(ends) {
			ends, rows = append(ends, 0), append(rows, s.peer)
		}
		ends[row] = s.to
		e := traceEvent{Name: s.name, Phase: "X", Proc: 1, Lane: row, Start: micros(s.from.Sub(t.first)), Dur: micros(s.to.Sub(s.from))}
		if s.peer != "" {
			e.Args = map[string]any{"peer": s.peer, "bytes": s.bytes, "failed": s.failed}
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if i > 0 {
			_ = b.WriteByte(',')
		}
		_, _ = b.Write(line)
	}
	_, _ = b.WriteString("]}\n")
	return b.Flush()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
