package xdp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// BenchmarkPackets sends packets of 1 KiB of payload one way over a link of their
// own, never more than a window ahead of the reader, which sleeps whenever there is
// nothing to read, or looks for a while first.
func BenchmarkPackets(b *testing.B) {
	const spin = 50 * time.Microsecond
	for _, tt := range []struct {
		name string
		cfg  *xdp.Config   // nil for sockets
		spin time.Duration // of who reads from sockets
	}{
		{"udp", nil, 0},
		{"udp spinning", nil, spin},
		{"native", &xdp.Config{Mode: xdp.ModeNative}, 0},
		{"native spinning", &xdp.Config{Mode: xdp.ModeNative, Spin: spin}, 0},
		{"native busy polling", &xdp.Config{Mode: xdp.ModeNative, BusyPoll: spin}, 0},
		{"generic", &xdp.Config{Mode: xdp.ModeGeneric}, 0},
		{"generic spinning", &xdp.Config{Mode: xdp.ModeGeneric, Spin: spin}, 0},
	} {
		b.Run(tt.name, func(b *testing.B) {
			p := lab(b, veth.Config{})
			var ends [2]transport.Conn
			for i := range ends {
				if tt.cfg == nil {
					ends[i] = udpAt(b, p, i, veth.Addrs4[i], udp.Config{Trains: udp.TrainsOff})
				} else {
					ends[i] = openAt(b, p, i, veth.Addrs4[i], *tt.cfg)
				}
			}
			oneWay(b, ends[0], ends[1], tt.spin)
		})
	}
}

// readWith reads a batch, looking for up to spin before it sleeps.
func readWith(c transport.Conn, slots []transport.Rx, spin time.Duration) (int, error) {
	for start := time.Now(); spin > 0 && time.Since(start) < spin; {
		if n, err := c.ReadBatch(slots, false); n > 0 || err != nil {
			return n, err
		}
	}
	return c.ReadBatch(slots, true)
}

func oneWay(b *testing.B, from, to transport.Conn, spin time.Duration) {
	const size, each, window = 1056, 64, 1024
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
	read := make(chan int, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for got := 0; got < b.N; {
			n, err := readWith(to, slots, spin)
			if err != nil {
				return
			}
			got += n
			read <- n
		}
		to.Release(slots)
	}()
	b.SetBytes(1024)
	b.ResetTimer()
	ahead := 0
	for sent := 0; sent < b.N; {
		n := min(each, b.N-sent)
		if _, err := from.WriteBatch(batch[:n]); err != nil {
			b.Fatal(err)
		}
		sent, ahead = sent+n, ahead+n
		for ahead > window-each {
			ahead -= <-read
		}
		for {
			select {
			case n := <-read:
				ahead -= n
				continue
			default:
			}
			break
		}
	}
	<-done
	b.StopTimer()
	if s := to.Stats(); s.RxOverflow+from.Stats().TxFull > 0 {
		b.Error("packets were lost: ", fmt.Sprintf("%+v", s))
	}
}
