package dsync_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/dsync"
)

func TestValue(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.67")
	require.LessOrEqual(t, dsync.ValueSize(100, 2), uint64(600))
	require.NoError(t, dsync.InitValue(mem, 8, 100, 2, []byte("first")))
	r, err := dsync.OpenValueReader(ctx, there, 8)
	require.NoError(t, err)
	data, version, err := r.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
	require.Zero(t, version)

	a, err := dsync.OpenValueWriter(ctx, there, 8, 0)
	require.NoError(t, err)
	b, err := dsync.OpenValueWriter(ctx, self, 8, 1)
	require.NoError(t, err)
	for i, w := range []*dsync.ValueWriter{a, b, b, a, a} {
		v, err := w.Store(ctx, 0, bytes.Repeat([]byte{byte(i)}, 20*i))
		require.NoError(t, err)
		data, version, err = r.Load(ctx)
		require.NoError(t, err)
		require.Equal(t, v, version)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 20*i), data)
	}
	_, err = a.Store(ctx, 0, make([]byte, 101))
	require.ErrorIs(t, err, dsync.ErrTooLarge)

	// By version, and by token.
	now, err := a.StoreIf(ctx, version, 0, []byte("mine"))
	require.NoError(t, err)
	seen, err := b.StoreIf(ctx, version, 0, []byte("too late"))
	require.ErrorIs(t, err, dsync.ErrConflict)
	require.Equal(t, now, seen)
	_, err = b.Store(ctx, 7, []byte("seventh"))
	require.NoError(t, err)
	_, err = a.Store(ctx, 6, []byte("sixth"))
	require.ErrorIs(t, err, dsync.ErrFenced)
	data, _, err = r.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, "seventh", string(data))
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = a.Store(over, 8, []byte("given up"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Store(ctx, 8, []byte("eighth"))
	require.NoError(t, err)
	data, _, err = r.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, "eighth", string(data))
	_, err = dsync.OpenValueWriter(ctx, there, 8, 2)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitValue(mem, 0, 4096, 1, nil), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitValue(mem, 0, 1<<62, 1, nil), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitValue(mem, 0, 4, 1, make([]byte, 5)), dsync.ErrTooLarge)
	require.NoError(t, r.Close())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// Readers beside writers, here and at the home: what they see is whole, and never
// older than before.
func TestValueIsNeverTorn(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.68")
	require.NoError(t, dsync.InitValue(mem, 0, 700, 2, bytes.Repeat([]byte{9}, 700)))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i, place := range []*hixl.RemoteRegion{there, self} {
		w, err := dsync.OpenValueWriter(ctx, place, 0, uint64(i))
		require.NoError(t, err)
		r, err := dsync.OpenValueReader(ctx, place, 0)
		require.NoError(t, err)
		writers.Go(func() {
			for n := range 200 {
				if _, err := w.Store(ctx, 0, bytes.Repeat([]byte{byte(2*n + i)}, 700-n)); err != nil {
					t.Error(err)
				}
				time.Sleep(50 * time.Microsecond) // readers have their turn
			}
		})
		readers.Go(func() {
			for last := uint64(0); ; {
				data, version, err := r.Load(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if version < last || !bytes.Equal(data, bytes.Repeat(data[:1], len(data))) {
					t.Errorf("version %d after %d: %x", version, last, data)
					return
				}
				last = version
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}
