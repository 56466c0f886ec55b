//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/device/staged"
	"github.com/gohixl/hixl/transport"
)

// pace makes a carrier that sends a fixed number of bytes a second, as a network card
// does: it takes packets into a queue and lets them out in their time.
type pace struct {
	transport.Conn
	rate  float64 // bytes a second
	queue chan pacedTx
	over  sync.WaitGroup
	once  sync.Once
}

// pacedTx is a packet and when it was given to the wire: that begins with it when it
// is free, and not when a goroutine has noticed.
type pacedTx struct {
	transport.Tx
	at time.Time
}

// queued is how many packets, or trains of them, wait at the most.
const queued = 64

func paced(rate float64) func(transport.Conn) transport.Conn {
	return func(c transport.Conn) transport.Conn {
		p := &pace{Conn: c, rate: rate, queue: make(chan pacedTx, queued)}
		p.over.Go(p.send)
		return p
	}
}

func (p *pace) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		tx := b[i]
		tx.Data = append([]byte(nil), tx.Data...)
		p.queue <- pacedTx{tx, time.Now()}
	}
	return len(b), nil
}

func (p *pace) send() {
	var free time.Time
	for tx := range p.queue {
		if free.Before(tx.at) {
			free = tx.at
		}
		free = free.Add(time.Duration(float64(len(tx.Data)) / p.rate * 1e9))
		if d := time.Until(free); d > 0 {
			time.Sleep(d)
		}
		_, _ = p.Conn.WriteBatch([]transport.Tx{tx.Tx}) // lost, as on any wire
	}
}

// Close is called when nobody writes any more.
func (p *pace) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { close(p.queue) })
	p.over.Wait()
	return err
}

// BenchmarkStagedTransfer writes from one device's memory to another's, with both
// copy engines and the wire paced at half a gigabyte a second, and reports what part
// of the wire's own rate, between host memories, the transfer reaches. 1 would be
// perfect overlap; one step after the other would give a third.
func BenchmarkStagedTransfer(b *testing.B) {
	const (
		rate  = 500_000_000
		size  = 1 << 20
		depth = 8
		// Two device memories behind each other make the way long: what is under way
		// on it is in staging, and the default would be all in it.
		window = sideWindow
		// Each callback of the runtime takes one of Go's processors, and here the
		// engines are threads, too.
		processors = 4
	)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	for _, direction := range []struct {
		name string
		op   hixl.Op
	}{{"write", hixl.OpWrite}, {"read", hixl.OpRead}} {
		b.Run(direction.name, func(b *testing.B) {
			s := newSim(b, map[string]string{"BANDWIDTH": strconv.Itoa(rate), "LATENCY": "20", "MAPPING": "absent", "VMM": "absent"})
			cfg := staged.Config{}
			x := newSide(s, 0, "127.71.50.1", cfg, paced(rate))
			y := newSide(s, 1, "127.71.50.2", cfg, paced(rate))
			connect(b, x, y, hixl.ConnectOptions{Window: window, Timeout: 18})
			transfer := func(n int, from, to *hixl.Region) {
				for posted, done := 0, 0; done < n; done++ {
					for ; posted < n && posted < done+depth; posted++ {
						at := uint64(posted % depth * size) // free again: completions come in order
						require.NoError(b, x.qp.PostSend(hixl.SendWR{
							Op: direction.op, SGE: []hixl.SGE{{Addr: from.Addr() + at, Length: size, LKey: from.LKey()}},
							RemoteAddr: to.Addr() + at, RKey: to.RKey(),
						}))
					}
					x.finish(1)
				}
			}
			const alone = 100
			near, far := x.register(host.New(make([]byte, depth*size))), y.register(host.New(make([]byte, depth*size)))
			from, to := x.register(memory(b, x.pool, depth*size)), y.register(memory(b, y.pool, depth*size))
			transfer(depth, near, far) // the window opens
			begun := time.Now()
			transfer(alone, near, far)
			wire := alone * size / time.Since(begun).Seconds()
			transfer(depth, from, to)
			b.SetBytes(size)
			b.ResetTimer()
			transfer(b.N, from, to)
			b.StopTimer()
			b.ReportMetric(float64(x.nic.Stats().RC.Retransmitted), "rtx")
			b.ReportMetric(wire/1e6, "wire-MB/s")
			b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds()/min(wire, rate), "of-slower")
			for _, p := range []*side{x, y} {
				st := p.pool.Stats()
				require.LessOrEqual(b, st.Staging+st.SpilledMax, cfg.Bound())
				b.ReportMetric(float64(st.CopiedBytes)/float64(st.Copies), "B/copy")
			}
		})
	}
}

// register makes a region of memory for as long as the benchmark runs.
func (x *side) register(m hixl.Memory) *hixl.Region {
	x.t.Helper()
	r, err := x.pd.RegisterMemory(m, hixl.MemoryOptions{Access: rights})
	require.NoError(x.t, err)
	x.t.Cleanup(func() { require.NoError(x.t, r.Deregister(context.Background())) })
	return r
}
