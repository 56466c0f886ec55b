package nic

import (
	"github.com/gohixl/hixl/transport"
)

// frames is memory that the transport has lent for packets to be sent, a few frames
// for each lane, so that it is asked once for many packets. The zero value lends
// nothing.
type frames struct {
	from  transport.Lender
	lanes [][]transport.Frame
}

// framesAtOnce is how many are asked for.
const framesAtOnce = 32

func newFrames(c transport.Conn) frames {
	l, ok := c.(transport.Lender)
	if !ok {
		return frames{}
	}
	f := frames{from: l, lanes: make([][]transport.Frame, l.Lanes())}
	for i := range f.lanes {
		f.lanes[i] = make([]transport.Frame, 0, framesAtOnce)
	}
	return f
}

// take returns memory for a packet of size bytes that leaves from a port, and its
// lease, or nil when there is none.
func (f *frames) take(srcPort uint16, size int) ([]byte, uint64) {
	if f.from == nil {
		return nil, 0
	}
	lane := f.from.Lane(srcPort)
	have := f.lanes[lane]
	if len(have) == 0 {
		have = have[:f.from.Lend(lane, have[:framesAtOnce])]
	}
	last := len(have) - 1
	if last < 0 || len(have[last].Buf) < size {
		return nil, 0
	}
	one := have[last]
	f.lanes[lane] = have[:last]
	return one.Buf[:size:size], one.Lease
}

// giveBack gives back what was taken for Txs that will not be written.
func (f *frames) giveBack(txs []transport.Tx) {
	for i := range txs {
		if txs[i].Lease != 0 {
			f.from.TakeBack([]transport.Frame{{Lease: txs[i].Lease}})
			txs[i].Lease = 0
		}
	}
}

// free gives back all that was not taken.
func (f *frames) free() {
	for i := range f.lanes {
		f.from.TakeBack(f.lanes[i])
		f.lanes[i] = f.lanes[i][:0]
	}
}
