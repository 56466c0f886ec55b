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
// own, never more than a window ahead of the reader.
func BenchmarkPackets(b *testing.B) {
	for _, tt := range []struct {
		name string
		open func(p *veth.Pair) (transport.Conn, transport.Conn)
	}{
		{"udp", func(p *veth.Pair) (transport.Conn, transport.Conn) {
			cfg := udp.Config{Trains: udp.TrainsOff}
			return udpAt(b, p, 0, veth.Addrs4[0], cfg), udpAt(b, p, 1, veth.Addrs4[1], cfg)
		}},
		{"native", func(p *veth.Pair) (transport.Conn, transport.Conn) {
			cfg := xdp.Config{Mode: xdp.ModeNative}
			return openAt(b, p, 0, veth.Addrs4[0], cfg), openAt(b, p, 1, veth.Addrs4[1], cfg)
		}},
		{"busy polling", func(p *veth.Pair) (transport.Conn, transport.Conn) {
			cfg := xdp.Config{Mode: xdp.ModeNative, BusyPoll: 50 * time.Microsecond}
			return openAt(b, p, 0, veth.Addrs4[0], cfg), openAt(b, p, 1, veth.Addrs4[1], cfg)
		}},
		{"generic", func(p *veth.Pair) (transport.Conn, transport.Conn) {
			cfg := xdp.Config{Mode: xdp.ModeGeneric}
			return openAt(b, p, 0, veth.Addrs4[0], cfg), openAt(b, p, 1, veth.Addrs4[1], cfg)
		}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			from, to := tt.open(lab(b, veth.Config{}))
			oneWay(b, from, to)
		})
	}
}

func oneWay(b *testing.B, from, to transport.Conn) {
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
			n, err := to.ReadBatch(slots, true)
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
