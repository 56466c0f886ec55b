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

// pace makes a carrier that sends a fixed number of bytes a second, as a network card
// does: it takes packets into a queue and lets them out in their time.
type pace struct {
	transport.Conn
	rate  float64 // bytes a second
	queue chan transport.Tx
	over  sync.WaitGroup
	once  sync.Once
}

// queued is how many packets, or trains of them, wait at the most.
const queued = 64

func paced(rate float64) func(transport.Conn) transport.Conn {
	return func(c transport.Conn) transport.Conn {
		p := &pace{Conn: c, rate: rate, queue: make(chan transport.Tx, queued)}
		p.over.Go(p.send)
		return p
	}
}

func (p *pace) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		tx := b[i]
		tx.Data = append([]byte(nil), tx.Data...)
		p.queue <- tx
	}
	return len(b), nil
}

// slack is how far the line may run behind its time, since sleeping is coarse.
const slack = 500 * time.Microsecond

func (p *pace) send() {
	var free time.Time
	for tx := range p.queue {
		if now := time.Now(); free.Before(now.Add(-slack)) {
			free = now.Add(-slack)
		}
		free = free.Add(time.Duration(float64(len(tx.Data)) / p.rate * 1e9))
		if d := time.Until(free); d > 0 {
			time.Sleep(d)
		}
		_, _ = p.Conn.WriteBatch([]transport.Tx{tx}) // lost, as on any wire
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
// of that rate the transfer reaches. 1 would be perfect overlap; one step after the
// other would give a third.
func BenchmarkStagedTransfer(b *testing.B) {
	const rate, size, depth = 500_000_000, 1 << 20, 4
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
			transfer := func(n int) {
				for posted, done := 0, 0; done < n; done++ {
					for ; posted < n && posted < done+depth; posted++ {
						at := posted % depth * size // free again: completions come in order
						require.NoError(b, x.qp.PostSend(hixl.SendWR{
							Op: direction.op, SGE: []hixl.SGE{x.sge(at, size)},
							RemoteAddr: y.region.Addr() + uint64(at), RKey: y.region.RKey(),
						}))
					}
					x.finish(1)
				}
			}
			transfer(16) // the window opens
			b.SetBytes(size)
			b.ResetTimer()
			transfer(b.N)
			b.StopTimer()
			nics := x.nic.Stats()
			b.ReportMetric(float64(nics.RC.Retransmitted), "rtx")
			reached := float64(b.N) * size / b.Elapsed().Seconds()
			b.ReportMetric(reached/rate, "of-rate")
			for _, p := range []*side{x, y} {
				st := p.pool.Stats()
				require.LessOrEqual(b, st.Staging+st.SpilledMax, cfg.Bound())
				b.ReportMetric(float64(st.CopiedBytes)/float64(st.Copies), "B/copy")
			}
		})
	}
}
