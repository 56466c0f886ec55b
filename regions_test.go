package hixl_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// Memory is pooled by size, comes zeroed, and has new keys each time.
func TestAllocPools(t *testing.T) {
	c := openContext(t, "127.88.48.1", hixl.PeerConfig{})
	r := alloc(t, c, 5000)
	require.EqualValues(t, 5000, r.Len())
	require.Zero(t, uintptr(unsafe.Pointer(&r.Bytes()[0]))%4096, "aligned")
	place, key := &r.Bytes()[0], r.RKey()
	r.Bytes()[17] = 1
	require.NoError(t, r.Deregister(t.Context()))
	require.NoError(t, r.Deregister(t.Context()), "twice is fine")
	require.Nil(t, r.Bytes())
	again := alloc(t, c, 6000) // of the same class
	require.Same(t, place, &again.Bytes()[0])
	require.NotEqual(t, key, again.RKey())
	require.Zero(t, again.Bytes()[17])
	other := alloc(t, c, 6000)
	require.NotSame(t, place, &other.Bytes()[0])
	_, err := c.Alloc(0, 0)
	require.Error(t, err)
}

func TestRegionPool(t *testing.T) {
	c := openContext(t, "127.88.49.1", hixl.PeerConfig{})
	p, err := c.NewRegionPool(100, 3, hixl.LocalWrite)
	require.NoError(t, err)
	seen := map[uint64]bool{}
	var all []hixl.Slice
	for range 3 {
		s, ok := p.Get()
		require.True(t, ok)
		require.Len(t, s.Bytes(), 100)
		require.Zero(t, s.Off%64)
		seen[s.Off] = true
		all = append(all, s)
	}
	require.Len(t, seen, 3)
	_, ok := p.Get()
	require.False(t, ok)
	p.Put(all[1])
	s, ok := p.Get()
	require.True(t, ok)
	require.Equal(t, all[1], s)
	for _, s := range all {
		p.Put(s)
	}
	require.Panics(t, func() { p.Put(all[0]) }, "twice")
	require.NoError(t, p.Close(t.Context()))
	_, err = c.NewRegionPool(0, 1, 0)
	require.ErrorIs(t, err, hixl.ErrConfig)
}

// The cache finds what covers a slice, registers what nothing does, and forgets
// what is invalidated.
func TestRegionCache(t *testing.T) {
	ctx := soon(t)
	a, b, toB, _ := couple(t, "127.88.50", hixl.PeerConfig{})
	far := alloc(t, b, 1<<16)
	remote, err := toB.Import(b.Describe(far))
	require.NoError(t, err)
	buf := make([]byte, 1<<16)
	copy(buf[1000:], "a tensor where it lies")
	whole, release, err := a.Cached(buf, 0)
	require.NoError(t, err)
	part, done, err := a.Cached(buf[1000:1022], 0)
	require.NoError(t, err)
	require.Same(t, whole.Region, part.Region)
	require.NoError(t, toB.Write(ctx, part.To(remote, 8)))
	require.Equal(t, "a tensor where it lies", string(far.Bytes()[8:30]))
	done()
	done()
	release()
	written, done, err := a.Cached(buf[:100], hixl.LocalWrite)
	require.NoError(t, err)
	require.NotSame(t, whole.Region, written.Region, "more rights")
	done()
	require.EqualValues(t, 1, a.Stats().RegionHits)
	require.EqualValues(t, 2, a.Stats().RegionMisses)
	require.NoError(t, a.Invalidate(buf[50:60]))
	require.False(t, whole.Region.Valid())
	require.False(t, written.Region.Valid())
	require.ErrorIs(t, toB.Write(ctx, part.To(remote, 8)), hixl.ErrStale)
	for i := range 3000 { // more than are kept
		_, done, err := a.Cached(buf[i:i+1], 0)
		require.NoError(t, err)
		done()
	}
}
