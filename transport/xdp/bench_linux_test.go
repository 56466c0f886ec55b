package xdp_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// way is a carrier between two ends, over a link of its own.
type way struct {
	ends [2]transport.Conn
	look time.Duration // of the reader, before it has the carrier wait
}

// sockets makes a way by sockets that send each packet on its own.
func sockets(b *testing.B, look time.Duration) *way {
	p := lab(b, veth.Config{})
	w := &way{look: look}
	for i := range w.ends {
		w.ends[i] = udpAt(b, p, i, veth.Addrs4[i], udp.Config{Trains: udp.TrainsOff})
	}
	return w
}

func frames(b *testing.B, cfg xdp.Config) *way {
	p := lab(b, veth.Config{})
	w := &way{}
	for i := range w.ends {
		w.ends[i] = openAt(b, p, i, veth.Addrs4[i], cfg)
	}
	return w
}

const benchLook = 50 * time.Microsecond

// BenchmarkPackets sends packets of 1 KiB of payload one way, never more than a window
// ahead of the reader.
func BenchmarkPackets(b *testing.B) {
	for _, tt := range []struct {
		name string
		make func(*testing.B) *way
	}{
		{"sockets", func(b *testing.B) *way { return sockets(b, 0) }},
		{"sockets whose reader looks", func(b *testing.B) *way { return sockets(b, benchLook) }},
		{"native", func(b *testing.B) *way { return frames(b, xdp.Config{Mode: xdp.ModeNative}) }},
		{"native that never looks", func(b *testing.B) *way { return frames(b, xdp.Config{Mode: xdp.ModeNative, Spin: xdp.SpinOff}) }},
		{"native busy polling", func(b *testing.B) *way {
			return frames(b, xdp.Config{Mode: xdp.ModeNative, Spin: xdp.SpinOff, BusyPoll: benchLook})
		}},
		{"generic", func(b *testing.B) *way { return frames(b, xdp.Config{Mode: xdp.ModeGeneric}) }},
		{"generic that never looks", func(b *testing.B) *way {
			return frames(b, xdp.Config{Mode: xdp.ModeGeneric, Spin: xdp.SpinOff})
		}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			w := tt.make(b)
			b.SetBytes(1024)
			b.ResetTimer()
			w.send(b, b.N)
		})
	}
}

// BenchmarkAgainstSockets compares rounds of packets by rings with rounds by sockets
// without trains, in turn. An operation is a round of each; the ratios are medians.
func BenchmarkAgainstSockets(b *testing.B) {
	const round = 200000
	for _, mode := range []xdp.Mode{xdp.ModeNative, xdp.ModeGeneric} {
		b.Run(mode.String(), func(b *testing.B) {
			ways := []*way{frames(b, xdp.Config{Mode: mode}), sockets(b, 0), sockets(b, benchLook)}
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, w := range ways {
					took[i] = append(took[i], w.send(b, round))
				}
			}
			ns := func(i int) float64 {
				slices.Sort(took[i])
				return float64(took[i][len(took[i])/2].Nanoseconds()) / round
			}
			b.ReportMetric(0, "ns/op") // says nothing
			b.ReportMetric(ns(0), "ns/packet")
			b.ReportMetric(ns(1)/ns(0), "x-sockets")
			b.ReportMetric(ns(2)/ns(0), "x-looking-sockets")
		})
	}
}

// read takes a batch.
func (w *way) read(slots []transport.Rx) (int, error) {
	to := w.ends[1]
	for start := time.Now(); w.look > 0 && time.Since(start) < w.look; {
		if n, err := to.ReadBatch(slots, false); n > 0 || err != nil {
			return n, err
		}
	}
	return to.ReadBatch(slots, true)
}

// send sends packets and returns how long it took until all were read.
func (w *way) send(b *testing.B, packets int) time.Duration {
	const size, each, window, patience = 1056, 64, 1024, 30 * time.Second
	from, to := w.ends[0], w.ends[1]
	batch := make([]transport.Tx, each)
	for i := range batch {
		batch[i] = transport.Tx{Data: make([]byte, size), Dst: to.LocalAddr(), SrcPort: from.SourcePort(0xc000)}
	}
	// The first packet has the neighbours resolved, which holds few packets back.
	if _, err := from.WriteBatch(batch[:1]); err != nil {
		b.Fatal(err)
	}
	slots := transport.NewBatch(to, each)
	if _, err := to.ReadBatch(slots, true); err != nil {
		b.Fatal(err)
	}
	lost := time.AfterFunc(patience, func() { _ = to.Close() })
	defer lost.Stop()
	read := make(chan int, 2*window)
	start := time.Now()
	go func() {
		defer close(read)
		for got := 0; got < packets; {
			n, err := w.read(slots)
			if err != nil {
				return
			}
			got += n
			read <- n
		}
		to.Release(slots)
	}()
	got := 0
	take := func() {
		n, ok := <-read
		if !ok {
			b.Fatalf("packets were lost: %d of %d came, %+v", got, packets, to.Stats())
		}
		got += n
	}
	for sent := 0; sent < packets; {
		n := min(each, packets-sent)
		if _, err := from.WriteBatch(batch[:n]); err != nil {
			b.Fatal(err)
		}
		sent += n
		for sent-got > window-each || sent-got > 0 && len(read) > 0 {
			take()
		}
	}
	for got < packets {
		take()
	}
	return time.Since(start)
}
