package nic_test

import (
	"net"
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/transport"
)

// wire is the shortest transport there is: WriteBatch copies packets into the
// other end's ring. It shows what the NIC itself costs.
type wire struct {
	addr  netip.Addr
	other *wire

	mu     sync.Mutex
	ring   [][]byte
	head   int
	n      int
	srcs   []uint16
	closed bool
}

const (
	wireSlots = 4096
	wireMTU   = 4200
)

func newWire(a, b string) (*wire, *wire) {
	x, y := &wire{addr: netip.MustParseAddr(a)}, &wire{addr: netip.MustParseAddr(b)}
	x.other, y.other = y, x
	for _, w := range []*wire{x, y} {
		store := make([]byte, wireSlots*wireMTU)
		for i := range wireSlots {
			w.ring = append(w.ring, store[i*wireMTU:i*wireMTU:(i+1)*wireMTU])
		}
		w.srcs = make([]uint16, wireSlots)
	}
	return x, y
}

func (w *wire) LocalAddr() netip.Addr { return w.addr }

func (w *wire) Caps() transport.Caps {
	return transport.Caps{KnownID: true, ECN: true, MTU: wireMTU, RxBuf: wireMTU}
}

func (w *wire) SourcePort(want uint16) uint16 { return want }

func (w *wire) WriteBatch(b []transport.Tx) (int, error) {
	o := w.other
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(b), nil
	}
	for i := range b {
		if o.n == wireSlots {
			break // loss
		}
		k := (o.head + o.n) % wireSlots
		o.ring[k] = append(o.ring[k][:0], b[i].Data...)
		o.srcs[k] = b[i].SrcPort
		o.n++
	}
	return len(b), nil
}

func (w *wire) ReadBatch(b []transport.Rx, _ bool) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, net.ErrClosed
	}
	i := 0
	for ; i < len(b) && w.n > 0; i++ {
		r := &b[i]
		r.Data = append(r.Buf[:0], w.ring[w.head]...)
		r.Src, r.Dst, r.SrcPort, r.Seg, r.HaveID = w.other.addr, w.addr, w.srcs[w.head], 0, false
		w.head = (w.head + 1) % wireSlots
		w.n--
	}
	return i, nil
}

func (w *wire) WaitRead() error        { return net.ErrClosed }
func (w *wire) Release([]transport.Rx) {}
func (w *wire) Stats() transport.Stats { return transport.Stats{} }

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return nil
}
