package transporttest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

func testNoWait(t *testing.T, a, _ transport.Conn) {
	batch := transport.NewBatch(a, 4)
	within(t, "ReadBatch without wait", func() {
		n, err := a.ReadBatch(batch, false)
		assert.NoError(t, err)
		assert.Zero(t, n)
		n, err = a.ReadBatch(nil, false)
		assert.NoError(t, err)
		assert.Zero(t, n)
	})
	if !a.Caps().Lends {
		_, err := a.ReadBatch(make([]transport.Rx, 1), false)
		assert.ErrorIs(t, err, transport.ErrNoBuffer)
	}
}

// A reader that waits does not keep another from trying.
func testWait(t *testing.T, a, b transport.Conn) {
	var got int
	var failed error
	within(t, "ReadBatch with wait", func() {
		started, done := make(chan struct{}), make(chan struct{})
		batch := transport.NewBatch(b, 4)
		go func() {
			defer close(done)
			close(started)
			got, failed = b.ReadBatch(batch, true)
		}()
		<-started
		time.Sleep(2 * time.Millisecond) // let it park; nothing depends on it
		n, err := b.ReadBatch(transport.NewBatch(b, 4), false)
		assert.NoError(t, err)
		assert.Zero(t, n)
		_, err = a.WriteBatch([]transport.Tx{{Data: packet(64, 1), Dst: b.LocalAddr()}})
		assert.NoError(t, err)
		<-done
	})
	require.NoError(t, failed)
	require.Equal(t, 1, got)
}

func testWaitRead(t *testing.T, a, b transport.Conn) {
	within(t, "WaitRead", func() {
		done := make(chan error)
		go func() { done <- b.WaitRead() }()
		time.Sleep(2 * time.Millisecond) // let it park; nothing depends on it
		_, err := a.WriteBatch([]transport.Tx{{Data: packet(64, 1), Dst: b.LocalAddr()}})
		assert.NoError(t, err)
		assert.NoError(t, <-done)
		assert.NoError(t, b.WaitRead(), "it takes nothing")
	})
	require.Equal(t, packet(64, 1), collect(t, b, 1)[0].packet)
}

func testClose(t *testing.T, a, b transport.Conn) {
	to := b.LocalAddr()
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Close(), net.ErrClosed)
	batch := make([]transport.Rx, 1)
	batch[0].Buf = make([]byte, 65535)
	for _, wait := range []bool{false, true} {
		n, err := a.ReadBatch(batch, wait)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Zero(t, n)
	}
	require.ErrorIs(t, a.WaitRead(), net.ErrClosed)
	_, err := a.WriteBatch([]transport.Tx{{Data: packet(64, 1), Dst: to}})
	require.ErrorIs(t, err, net.ErrClosed)
	_ = a.Caps()
	_ = a.Stats()
	_ = a.SourcePort(1)
	require.True(t, a.LocalAddr().IsValid())
}

func testCloseWakes(t *testing.T, a, _ transport.Conn) {
	within(t, "a reader of a closed Conn", func() {
		errs := make(chan error)
		go func() {
			_, err := a.ReadBatch(transport.NewBatch(a, 2), true)
			errs <- err
		}()
		go func() { errs <- a.WaitRead() }()
		time.Sleep(5 * time.Millisecond) // let them park; nothing depends on it
		assert.NoError(t, a.Close())
		assert.ErrorIs(t, <-errs, net.ErrClosed)
		assert.ErrorIs(t, <-errs, net.ErrClosed)
	})
}

// Several goroutines may write at once, and each one's packets keep their order.
func testWriters(t *testing.T, a, b transport.Conn) {
	const writers, rounds, each = 4, 10, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				var batch []transport.Tx
				for i := range each {
					batch = append(batch, transport.Tx{
						Data: []byte{byte(w), byte(r*each + i), 0, 0}, Dst: b.LocalAddr(),
						SrcPort: a.SourcePort(0xc000 + uint16(w)),
					})
				}
				n, err := a.WriteBatch(batch)
				assert.NoError(t, err)
				assert.Equal(t, each, n)
			}
		})
	}
	got := collect(t, b, writers*rounds*each)
	wg.Wait()
	var next [writers]byte
	for _, r := range got {
		w := r.packet[0]
		require.Equal(t, next[w], r.packet[1], "writer %d", w)
		next[w]++
	}
}

func testStats(t *testing.T, a, b transport.Conn) {
	before, rbefore := a.Stats(), b.Stats()
	send(t, a, transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr()},
		transport.Tx{Data: packet(100, 1), Dst: b.LocalAddr()})
	collect(t, b, 2)
	after, rafter := a.Stats(), b.Stats()
	require.EqualValues(t, 2, after.TxPackets-before.TxPackets)
	require.EqualValues(t, 164, after.TxBytes-before.TxBytes)
	require.EqualValues(t, 2, rafter.RxPackets-rbefore.RxPackets)
	require.EqualValues(t, 164, rafter.RxBytes-rbefore.RxBytes)
	require.Zero(t, after.TxFull+after.TxUnreachable+rafter.RxOverflow+rafter.RxTruncated)

	if b.Caps().Lends {
		return
	}
	// What does not fit is dropped and counted, and the next packet arrives.
	send(t, a, transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr()})
	small := []transport.Rx{{Buf: make([]byte, 16)}}
	require.Eventually(t, func() bool {
		n, err := b.ReadBatch(small, false)
		return err == nil && n == 0 && b.Stats().RxTruncated == 1
	}, patience, 50*time.Microsecond)
	send(t, a, transport.Tx{Data: packet(70, 2), Dst: b.LocalAddr()})
	require.Equal(t, packet(70, 2), collect(t, b, 1)[0].packet)
}

func testAllocations(t *testing.T, a, b transport.Conn) {
	slots := transport.NewBatch(b, 16)
	batch := make([]transport.Tx, 8)
	for i := range batch {
		batch[i] = transport.Tx{
			Data: packet(256, i), Dst: b.LocalAddr(), TOS: 2, SrcPort: a.SourcePort(0xc000 + uint16(i/4)),
		}
	}
	trip := func() {
		if n, err := a.WriteBatch(batch); n != len(batch) || err != nil {
			t.Error(n, err)
		}
		for got := 0; got < len(batch); {
			n, err := b.ReadBatch(slots, true)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range n {
				got += slots[i].Packets()
			}
		}
	}
	trip()
	// A background collection may cost a few; one a batch would show.
	require.Less(t, testing.AllocsPerRun(200, trip), 1.0)
}
