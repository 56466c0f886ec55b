package rc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// wireUp carries packets between two engines without allocating.
type wireUp struct {
	a, b *RC
	now  mono.Time
	out  *wr.Batch
	buf  []byte
	pkt  roce.Packet
}

func newWireUp(tb testing.TB) (*wireUp, *end) {
	t, ok := tb.(*testing.T)
	if !ok {
		t = &testing.T{}
	}
	a, b := newPair(t, withMTU(4096))
	return &wireUp{a: a.rc, b: b.rc, now: a.now, out: wr.NewBatch(32, 1<<18), buf: make([]byte, 8192)}, a
}

// move drains from and gives what it sent to to; memory is left alone.
func (w *wireUp) move(from, to *RC) {
	w.out.Reset()
	from.Drain(w.now, w.out)
	for i := range w.out.Len() {
		o := w.out.At(i)
		n := copy(w.buf, o.Header()) + int(o.Len) + int(o.Pad) + roce.ICRCLen
		if o.Token != 0 {
			from.Fetched(w.now, o.Token, wr.Done, false)
		}
		if err := w.pkt.Decode(w.buf[:n]); err != nil {
			panic(err)
		}
		if work := to.Accept(w.now, &w.pkt); work.Kind != wr.WorkNone {
			to.Commit(w.now, work.Token, wr.Done, 0)
		}
	}
}

func (w *wireUp) operation(r *wr.Request) {
	if err := w.a.Post(w.now, r); err != nil {
		panic(err)
	}
	for len(w.a.Completions()) == 0 {
		w.move(w.a, w.b)
		w.move(w.b, w.a)
		w.now += 1000
	}
	w.a.ClearCompletions()
	w.b.ClearCompletions()
}

func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		name string
		op   wr.Op
		n    int
	}{
		{"Write64", wr.OpWrite, 64}, {"Write64KiB", wr.OpWrite, 65536}, {"Read64KiB", wr.OpRead, 65536}, {"FetchAdd", wr.OpFetchAdd, 8},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, a := newWireUp(b)
			r := a.req(1, c.op, 0, c.n)
			w.operation(r)
			b.ReportAllocs()
			packets := w.a.Stats().Requests + w.b.Stats().Responses
			for b.Loop() {
				w.operation(r)
			}
			packets = w.a.Stats().Requests + w.b.Stats().Responses - packets
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
		})
	}
}

func TestNoAllocs(t *testing.T) {
	for _, op := range []wr.Op{wr.OpWrite, wr.OpRead, wr.OpFetchAdd, wr.OpAtomicWrite} {
		w, a := newWireUp(t)
		r := a.req(1, op, 0, 8)
		w.operation(r)
		require.Zero(t, testing.AllocsPerRun(200, func() { w.operation(r) }), "%s", op)
	}
}
