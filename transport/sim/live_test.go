package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

// In a synctest bubble a live network's time is the bubble's, exactly.
func TestLiveInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n, a, b := pair(t, Config{Link: Link{Delay: 3 * time.Millisecond}})
		ended := make(chan error)
		go func() { ended <- n.Run(ctx) }()
		synctest.Wait()
		require.ErrorIs(t, n.Run(ctx), ErrRunning)

		begin := time.Now()
		go func() {
			time.Sleep(time.Second)
			_, _ = a.WriteBatch([]transport.Tx{{Data: []byte{0, 1, 2, 3}, Dst: addrB}})
		}()
		slots := transport.NewBatch(b, 2)
		k, err := b.ReadBatch(slots, true)
		require.NoError(t, err)
		require.Equal(t, 1, k)
		require.Equal(t, time.Second+3*time.Millisecond, time.Since(begin))
		require.Equal(t, Start.Add(time.Since(begin)), n.Now())

		n.Advance(n.Now().Add(time.Hour))
		require.Equal(t, Start.Add(time.Since(begin)), n.Now(), "nobody steps a live network")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		n.Advance(n.Now().Add(time.Hour))
		require.Equal(t, Start.Add(time.Since(begin)+time.Hour), n.Now(), "but one that has stopped")
	})
}

func BenchmarkWriteRead(b *testing.B) {
	n, src, dst := pair(b, Config{Link: Link{Delay: time.Microsecond}})
	batch := make([]transport.Tx, 16)
	for i := range batch {
		batch[i] = transport.Tx{Data: make([]byte, 1056), Dst: addrB}
	}
	slots := transport.NewBatch(dst, 16)
	b.ReportAllocs()
	b.SetBytes(16 * 1056)
	for b.Loop() {
		if _, err := src.WriteBatch(batch); err != nil {
			b.Fatal(err)
		}
		n.Advance(n.Next())
		if k, _ := dst.ReadBatch(slots, false); k != len(slots) {
			b.Fatal(k)
		}
	}
}
