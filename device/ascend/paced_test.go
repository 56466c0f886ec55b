//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device/staged"
	"github.com/gohixl/hixl/transport"
)

// pace makes a carrier that takes a fixed number of bytes a second, as a network
// card does. Its line is busy until what it was given has left.
type pace struct {
	transport.Conn
	rate float64 // bytes a second

	mu   sync.Mutex
	free time.Time // guarded by mu
}

func paced(rate float64) func(transport.Conn) transport.Conn {
	return func(c transport.Conn) transport.Conn { return &pace{Conn: c, rate: rate} }
}

// Timing of a paced line: it may run behind by a burst, since sleeping is coarse.
const slack = 200 * time.Microsecond

func (p *pace) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		p.wait(len(b[i].Data))
		if n, err := p.Conn.WriteBatch(b[i : i+1]); n != 1 || err != nil {
			return i + n, err
		}
	}
	return len(b), nil
}

func (p *pace) wait(n int) {
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now.Add(-slack)) {
		p.free = now.Add(-slack)
	}
	p.free = p.free.Add(time.Duration(float64(n) / p.rate * 1e9))
	until := p.free
	p.mu.Unlock()
	if d := time.Until(until); d > 0 {
		time.Sleep(d)
	}
}

// BenchmarkStagedTransfer writes from one device's memory to another's, with both
// copy engines and the wire paced at half a gigabyte a second, and reports what part
// of that rate the transfer reaches. 1 would be perfect overlap; one step after the
// other would give a third.
func BenchmarkStagedTransfer(b *testing.B) {
	const rate, size, depth = 500 << 20, 1 << 20, 4
	for _, direction := range []struct {
		name string
		op   hixl.Op
	}{{"write", hixl.OpWrite}, {"read", hixl.OpRead}} {
		b.Run(direction.name, func(b *testing.B) {
			s := newSim(b, map[string]string{"BANDWIDTH": strconv.Itoa(rate), "LATENCY": "20", "MAPPING": "absent", "VMM": "absent"})
			cfg := staged.Config{}
			x := newSide(s, 0, "127.71.50.1", cfg, paced(rate))
			y := newSide(s, 1, "127.71.50.2", cfg, paced(rate))
			join(b, x, y)
			wr := hixl.SendWR{
				Op: direction.op, SGE: []hixl.SGE{x.sge(0, size)}, RemoteAddr: y.region.Addr(), RKey: y.region.RKey(),
			}
			transfer := func(n int) {
				for posted, done := 0, 0; done < n; done++ {
					for ; posted < n && posted < done+depth; posted++ {
						require.NoError(b, x.qp.PostSend(wr))
					}
					x.finish(1)
				}
			}
			transfer(16) // the window opens
			b.SetBytes(size)
			b.ResetTimer()
			transfer(b.N)
			b.StopTimer()
			reached := float64(b.N) * size / b.Elapsed().Seconds()
			b.ReportMetric(reached/rate, "of-rate")
			for _, p := range []*side{x, y} {
				require.LessOrEqual(b, p.pool.Stats().Staging+p.pool.Stats().SpilledMax, cfg.Bound())
			}
		})
	}
}
