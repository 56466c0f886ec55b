package rc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// probedTwice returns a pair whose requester waits for the answer to a second probe in a
// row: the first two of its four packets have arrived, of which one is acknowledged.
func probedTwice(t *testing.T, third wr.Op) (a, b *end) {
	a, b = newPair(t, adaptive(7))
	for i, op := range []wr.Op{wr.OpWrite, wr.OpWrite, third, wr.OpWrite} {
		a.post(a.req(uint64(i), op, 8*i, 8))
	}
	b.postRecv(1, 16, 8)
	a.drain()
	a.deliver()
	a.deliver()
	a.lose(2)
	a.advance(a.rc.Deadline().Sub(a.now))
	a.want("WRITE_ONLY 0 A va+0 len=8 [8]")
	a.lose(1)
	a.receive(a.ackFor(0, 1))
	a.drain()
	a.want("WRITE_ONLY 3 A va+24 len=8 [8]")
	a.lose(1)
	a.advance(a.rc.Deadline().Sub(a.now))
	a.want("WRITE_ONLY 1 A va+8 len=8 [8]")
	a.lose(1)
	require.EqualValues(t, firstWindow, a.rc.req.win.packets)
	return a, b
}

// An answer that ends at the second probe in a row and itself tells what is wrong is acted
// on once: it shows one loss, or none where the peer is only not ready (§3.10, §3.14, §3.15).
func TestOneLossForSecondProbe(t *testing.T) {
	const one = firstWindow - firstWindow/lossCut
	for name, c := range map[string]struct {
		third       wr.Op
		psn         int // of the answer
		answer      roce.Syndrome
		again       string
		window      int
		nak, passed uint64
	}{
		"ACK":         {wr.OpWrite, 1, roce.SynACK, "WRITE_ONLY 2 A va+16 len=8 [8]", one, 0, 0},
		"NAK":         {wr.OpWrite, 2, roce.SynNakSeq, "WRITE_ONLY 2 A va+16 len=8 [8]", one, 1, 0},
		"implied NAK": {wr.OpRead, 3, roce.SynACK, "READ_REQ 2 A va+16 len=8", one, 0, 1},
		"RNR NAK":     {wr.OpSend, 2, roce.RNR(1), "SEND_ONLY 2 A [8]", firstWindow, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := probedTwice(t, c.third)
			a.receive(a.answerFor(c.psn, c.answer, 2))
			a.drain()
			if c.answer.Kind() == roce.AckRNR {
				a.want()
				a.advance(a.rc.Deadline().Sub(a.now))
			}
			a.want(c.again, "WRITE_ONLY 3 A va+24 len=8 [8]")
			require.EqualValues(t, c.window, a.rc.req.win.packets)
			s := a.rc.Stats()
			require.Equal(t, [2]uint64{c.nak, c.passed}, [2]uint64{s.SeqNAKsReceived, s.ImpliedNAKs})
			a.exchange()
			a.wantDone("0:success", "1:success", "2:success", "3:success")
		})
	}
}

// New work after a probe takes the place of the last packet also when the batch has no room
// for more and what is behind it must not leave yet.
func TestNewWorkAfterProbeFillsBatch(t *testing.T) {
	a, b := newPair(t, adaptive(7))
	a.batch = wr.NewBatch(1, 1<<18)
	for i := range 6 { // two more than the depth
		a.post(a.req(uint64(i), wr.OpRead, 64*i, 64))
	}
	a.drain()
	a.advance(firstTimeout)
	a.lose(4)
	a.deliverAll() // the probe
	b.deliver()
	a.drain()
	a.want("READ_REQ 4 A va+256 len=64")
}
