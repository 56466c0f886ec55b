package mr_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/mr"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

const remoteAll = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

func newTable(tb testing.TB, c mr.Config) *mr.Table {
	tb.Helper()
	table, err := mr.NewTable(c)
	require.NoError(tb, err)
	return table
}

func register(tb testing.TB, pd *mr.PD, mem device.Memory, o mr.Options) *mr.Region {
	tb.Helper()
	r, err := pd.Register(mem, o)
	require.NoError(tb, err)
	return r
}

func TestRegisterWholeMemory(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	mem := host.New(make([]byte, 10000))
	r := register(t, pd, mem, mr.Options{Access: remoteAll})

	require.EqualValues(t, 10000, r.Len())
	require.Zero(t, r.MemOff())
	require.Same(t, pd, r.PD())
	require.Equal(t, device.Memory(mem), r.Memory())
	require.Equal(t, remoteAll, r.Access())
	require.NotEqual(t, r.LKey(), r.RKey())
	require.NotZero(t, r.LKey())
	require.NotZero(t, r.RKey())
	require.True(t, r.Valid())
	require.Len(t, r.Bytes(), 10000)
	require.Equal(t, mem.Address()%4096, r.Addr()%4096, "congruent in the page")
	require.NoError(t, r.Deregister(t.Context()))
}

func TestRegisterPart(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	mem := host.New(make([]byte, 10000))
	for _, off := range []uint64{0, 1, 7, 4095, 4096, 9999, 10000} {
		r := register(t, pd, mem, mr.Options{Off: off, Access: mr.RemoteRead})
		require.EqualValues(t, 10000-off, r.Len())
		require.Equal(t, off, r.MemOff())
		require.Equal(t, (mem.Address()+off)%4096, r.Addr()%4096)
		if r.Len() > 0 {
			s, err := pd.Remote(r.RKey(), r.Addr()+r.Len()-1, 1, mr.RemoteRead)
			require.NoError(t, err)
			require.EqualValues(t, 9999, s.Off)
			require.Same(t, &mem.Bytes()[9999], &s.Bytes()[0])
		}
		_, err := pd.Remote(r.RKey(), r.Addr()+r.Len(), 1, mr.RemoteRead)
		require.ErrorIs(t, err, mr.ErrBounds)
	}
}

// A memory that the CPU cannot address has no view and works all the same.
func TestRegisterDeviceMemory(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	mem := devicetest.NewLate(devicetest.LateConfig{Size: 8192})
	r := register(t, pd, mem, mr.Options{Off: 24, Access: mr.LocalWrite})
	require.Nil(t, r.Bytes())
	require.EqualValues(t, 24, r.Addr()%4096)
	s, err := pd.Local(r.SGE(100, 50), mr.LocalWrite)
	require.NoError(t, err)
	require.Nil(t, s.Bytes())
	require.EqualValues(t, 124, s.Off)
	require.EqualValues(t, 50, s.Len)
}

func TestRegisterRefusals(t *testing.T) {
	pd := newTable(t, mr.Config{MaxRegions: 1}).AllocPD()
	mem := host.New(make([]byte, 64))
	at := func(v uint64) *uint64 { return &v }
	for name, c := range map[string]struct {
		o    mr.Options
		is   error
		says string
	}{
		"beyond":        {mr.Options{Off: 60, Len: 5}, mr.ErrBounds, "5 bytes at offset 60; allowed: a range of the memory's 64 bytes"},
		"far beyond":    {mr.Options{Off: 65}, mr.ErrBounds, "64 bytes"},
		"wrapping":      {mr.Options{Off: 8, Len: math.MaxUint64 - 4}, mr.ErrBounds, "64 bytes"},
		"remote write":  {mr.Options{Access: mr.RemoteWrite}, mr.ErrAccessFlags, "add LocalWrite"},
		"remote atomic": {mr.Options{Access: mr.RemoteAtomic | mr.RemoteRead}, mr.ErrAccessFlags, "add LocalWrite"},
		"on demand":     {mr.Options{Access: mr.OnDemand}, mr.ErrAccessFlags, "access ON_DEMAND"},
		"windows":       {mr.Options{Access: mr.MWBind | mr.RemoteRead}, mr.ErrAccessFlags, "access MW_BIND"},
		"flush":         {mr.Options{Access: mr.FlushGlobal | mr.FlushPersistent}, mr.ErrAccessFlags, "access FLUSH_GLOBAL|FLUSH_PERSISTENT"},
		"unknown":       {mr.Options{Access: 1 << 30}, mr.ErrAccessFlags, "0x40000000"},
		"incongruent":   {mr.Options{IOVA: at(mem.Address() + 4)}, mr.ErrIOVA, "congruent to the memory modulo 8"},
		"iova wraps":    {mr.Options{IOVA: at(math.MaxUint64&^7 - 56 + mem.Address()%8)}, mr.ErrIOVA, "use a lower one"},
		"both bases":    {mr.Options{IOVA: at(0), Access: mr.ZeroBased}, mr.ErrIOVA, "one of the two"},
		"odd and zero":  {mr.Options{Off: 3, Access: mr.ZeroBased}, mr.ErrIOVA, "aligned byte"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pd.Register(mem, c.o)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			var typed *mr.RegisterError
			require.ErrorAs(t, err, &typed)
		})
	}
	r := register(t, pd, mem, mr.Options{})
	_, err := pd.Register(mem, mr.Options{})
	require.ErrorIs(t, err, mr.ErrTooMany)
	require.ErrorContains(t, err, "1 at a time")
	require.NoError(t, r.Deregister(t.Context()))
	require.NoError(t, mem.Close(), "refused registrations hold nothing")
	_, err = pd.Register(mem, mr.Options{})
	require.ErrorIs(t, err, device.ErrClosed)
	require.NoError(t, pd.Dealloc(), "nor do they count in the domain")
}

func TestConfigRefusals(t *testing.T) {
	for _, n := range []int{-1, mr.MaxRegions + 1} {
		_, err := mr.NewTable(mr.Config{MaxRegions: n})
		require.ErrorIs(t, err, mr.ErrConfig)
		require.ErrorContains(t, err, "give 1 to 524288")
	}
}

func TestChosenBases(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	mem := host.New(make([]byte, 64))
	zero := register(t, pd, mem, mr.Options{Access: mr.ZeroBased | mr.RemoteRead})
	require.Zero(t, zero.Addr())
	s, err := pd.Remote(zero.RKey(), 63, 1, mr.RemoteRead)
	require.NoError(t, err)
	require.EqualValues(t, 63, s.Off)

	top := math.MaxUint64 - 71 + mem.Address()%8 // the highest congruent base
	r := register(t, pd, mem, mr.Options{IOVA: &top, Access: mr.RemoteRead})
	require.Equal(t, top, r.Addr())
	_, err = pd.Remote(r.RKey(), top+60, 4, mr.RemoteRead)
	require.NoError(t, err)
	for _, n := range []uint32{5, math.MaxUint32} {
		_, err = pd.Remote(r.RKey(), top+60, n, mr.RemoteRead)
		require.ErrorIs(t, err, mr.ErrBounds, "a sum that wraps must not pass (§6)")
	}
}

func TestEmptyRegion(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	r := register(t, pd, host.New(nil), mr.Options{Access: remoteAll})
	require.Zero(t, r.Len())
	_, err := pd.Remote(r.RKey(), r.Addr(), 0, mr.RemoteRead)
	require.NoError(t, err)
	_, err = pd.Remote(r.RKey(), r.Addr(), 1, mr.RemoteRead)
	require.ErrorIs(t, err, mr.ErrBounds)
	require.NoError(t, r.Deregister(t.Context()))
}

func TestFaults(t *testing.T) {
	table := newTable(t, mr.Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	r := register(t, pd, host.New(make([]byte, 64)), mr.Options{Access: mr.RemoteRead})
	gone := register(t, pd, host.New(make([]byte, 64)), mr.Options{Access: remoteAll})
	require.NoError(t, gone.Deregister(t.Context()))

	for name, c := range map[string]struct {
		pd   *mr.PD
		key  uint32
		va   uint64
		n    uint32
		need mr.Access
		want mr.Fault
		is   error
		says string
	}{
		"zero key":    {pd, 0, r.Addr(), 1, 0, mr.FaultKey, mr.ErrKey, "no region has this key"},
		"stale key":   {pd, gone.RKey(), gone.Addr(), 1, 0, mr.FaultKey, mr.ErrKey, "exchange keys again"},
		"lkey":        {pd, r.LKey(), r.Addr(), 1, 0, mr.FaultKind, mr.ErrKey, "RKey for the peer"},
		"other pd":    {other, r.RKey(), r.Addr(), 1, mr.RemoteRead, mr.FaultPD, mr.ErrPD, "another protection domain"},
		"right":       {pd, r.RKey(), r.Addr(), 1, mr.RemoteWrite, mr.FaultPermission, mr.ErrPermission, "needs REMOTE_WRITE but the region has REMOTE_READ"},
		"below":       {pd, r.RKey(), r.Addr() - 1, 1, 0, mr.FaultBounds, mr.ErrBounds, "64 bytes from"},
		"across":      {pd, r.RKey(), r.Addr() + 63, 2, 0, mr.FaultBounds, mr.ErrBounds, "stay within"},
		"above":       {pd, r.RKey(), r.Addr() + 65, 0, 0, mr.FaultBounds, mr.ErrBounds, "stay within"},
		"huge":        {pd, r.RKey(), r.Addr(), math.MaxUint32, 0, mr.FaultBounds, mr.ErrBounds, "4294967295 bytes"},
		"wrapping va": {pd, r.RKey(), math.MaxUint64, 8, 0, mr.FaultBounds, mr.ErrBounds, "0xffffffffffffffff"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.pd.Remote(c.key, c.va, c.n, c.need)
			require.ErrorIs(t, err, c.is)
			require.Equal(t, error(c.want), err)
			require.NotEmpty(t, err.Error())

			full := c.pd.Explain(err, "remote read", c.key, c.va, uint64(c.n), c.need)
			var typed *mr.AccessError
			require.ErrorAs(t, full, &typed)
			require.ErrorIs(t, full, c.is)
			require.ErrorIs(t, full, c.want)
			require.ErrorContains(t, full, "remote read of ")
			require.ErrorContains(t, full, c.says)
			if errors.Is(full, mr.ErrPD) {
				require.Zero(t, typed.Size, "another domain's region stays unknown")
			}
		})
	}
	_, err := pd.Local(mr.SGE{Addr: r.Addr(), Length: 1, LKey: r.RKey()}, 0)
	require.Equal(t, error(mr.FaultKind), err)
	_, err = pd.Local(r.SGE(0, 64), mr.LocalWrite)
	require.ErrorIs(t, err, mr.ErrPermission)
	_, err = pd.Local(r.SGE(0, 64), 0)
	require.NoError(t, err, "reading locally is always allowed")
	require.NoError(t, pd.Explain(nil, "", 0, 0, 0, 0))
	require.Equal(t, context.Canceled, pd.Explain(context.Canceled, "", 0, 0, 0, 0))
}

func TestAccessNames(t *testing.T) {
	require.Equal(t, "none", mr.Access(0).String())
	require.Equal(t, "LOCAL_WRITE|REMOTE_READ|0x40000000", (mr.LocalWrite | mr.RemoteRead | 1<<30).String())
	require.Equal(t, 8, strings.Count(mr.Supported.String(), "|")+1)
}

func TestPDDealloc(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	r := register(t, pd, host.New(make([]byte, 8)), mr.Options{})
	require.ErrorIs(t, pd.Dealloc(), mr.ErrBusy)
	require.NoError(t, r.Deregister(t.Context()))

	require.NoError(t, pd.Retain())
	require.ErrorIs(t, pd.Dealloc(), mr.ErrBusy)
	require.ErrorContains(t, pd.Dealloc(), "0 regions and 1 queues")
	pd.Release()
	require.Panics(t, pd.Release)

	require.NoError(t, pd.Dealloc())
	require.ErrorIs(t, pd.Dealloc(), mr.ErrPDClosed)
	require.ErrorIs(t, pd.Retain(), mr.ErrPDClosed)
	_, err := pd.Register(host.New(nil), mr.Options{})
	require.ErrorIs(t, err, mr.ErrPDClosed)
}

func TestDeregisterRevokesAtOnceAndWaits(t *testing.T) {
	table := newTable(t, mr.Config{})
	pd := table.AllocPD()
	mem := host.New(make([]byte, 64))
	r := register(t, pd, mem, mr.Options{Access: remoteAll})
	s, err := pd.Remote(r.RKey(), r.Addr(), 64, mr.RemoteRead)
	require.NoError(t, err)
	require.True(t, s.Acquire())
	require.True(t, r.Acquire())
	require.Equal(t, 2, r.Lent())

	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	err = r.Deregister(gaveUp)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, mr.ErrBusy)
	require.ErrorContains(t, err, "2 transfers")

	// Revoked for good, though somebody gave up waiting.
	require.False(t, r.Valid())
	require.False(t, r.Acquire())
	require.False(t, s.Acquire())
	_, err = pd.Remote(r.RKey(), r.Addr(), 1, mr.RemoteRead)
	require.ErrorIs(t, err, mr.ErrKey)
	_, err = pd.Local(r.SGE(0, 1), 0)
	require.ErrorIs(t, err, mr.ErrKey)
	require.ErrorIs(t, pd.Dealloc(), mr.ErrBusy)
	require.ErrorIs(t, mem.Close(), device.ErrBusy)
	require.Equal(t, 1, table.Live())

	waiting := make(chan error, 2)
	for range 2 {
		go func() { waiting <- r.Deregister(context.Background()) }()
	}
	s.Release()
	select {
	case err := <-waiting:
		t.Fatalf("Deregister returned %v with a span lent", err)
	case <-time.After(10 * time.Millisecond): // may miss a fault, never makes one
	}
	r.Release()
	require.NoError(t, <-waiting)
	require.NoError(t, <-waiting)
	require.NoError(t, r.Deregister(gaveUp), "nothing to wait for, whatever the context")
	require.Zero(t, table.Live())
	require.NoError(t, pd.Dealloc())
	require.NoError(t, mem.Close())
	require.Panics(t, r.Release)
}

// Readers hold the region while it is being deregistered under them: none of
// them may see it after Deregister has returned.
func TestDeregisterAgainstAcquire(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	for range 50 {
		b := make([]byte, 64)
		mem := host.New(b)
		r := register(t, pd, mem, mr.Options{Access: remoteAll})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					s, err := pd.Remote(r.RKey(), r.Addr(), 64, mr.RemoteWrite)
					if err != nil || !s.Acquire() {
						return
					}
					_ = s.Bytes()[0]
					s.Release()
				}
			})
		}
		require.NoError(t, r.Deregister(t.Context()))
		b[0] = 1 // the race detector sees a reader that is still there
		wg.Wait()
		require.NoError(t, mem.Close())
	}
}

func TestInvalidateRemote(t *testing.T) {
	table := newTable(t, mr.Config{})
	pd := table.AllocPD()
	mem := host.New(make([]byte, 64))
	r := register(t, pd, mem, mr.Options{Access: remoteAll | mr.RemoteInvalidate})
	s, err := pd.Remote(r.RKey(), r.Addr(), 8, mr.RemoteRead)
	require.NoError(t, err)
	l, err := pd.Local(r.SGE(0, 8), mr.LocalWrite)
	require.NoError(t, err)

	require.ErrorIs(t, pd.InvalidateRemote(r.LKey()), mr.ErrKey)
	require.ErrorIs(t, pd.InvalidateRemote(r.RKey()^0x1234), mr.ErrKey)
	require.ErrorIs(t, table.AllocPD().InvalidateRemote(r.RKey()), mr.ErrPD)
	fixed := register(t, pd, mem, mr.Options{Access: remoteAll})
	require.ErrorIs(t, pd.InvalidateRemote(fixed.RKey()), mr.ErrPermission)

	require.NoError(t, pd.InvalidateRemote(r.RKey()))
	require.ErrorIs(t, pd.InvalidateRemote(r.RKey()), mr.ErrRevoked, "a replay fails")
	_, err = pd.Remote(r.RKey(), r.Addr(), 8, mr.RemoteRead)
	require.ErrorIs(t, err, mr.ErrRevoked)
	require.False(t, s.Acquire(), "in the middle of a message too")
	require.False(t, r.AcquireRemote())

	require.True(t, r.Valid(), "local use goes on")
	_, err = pd.Local(r.SGE(0, 8), mr.LocalWrite)
	require.NoError(t, err)
	require.True(t, l.Acquire())
	l.Release()

	require.True(t, fixed.Invalidate(), "the owner needs no right for it")
	require.False(t, fixed.Invalidate())
	require.NoError(t, r.Deregister(t.Context()))
	require.NoError(t, fixed.Deregister(t.Context()))
}

func TestSub(t *testing.T) {
	pd := newTable(t, mr.Config{}).AllocPD()
	r := register(t, pd, host.New([]byte("0123456789")), mr.Options{Off: 2, Access: mr.RemoteRead})
	s, err := pd.Remote(r.RKey(), r.Addr()+1, 6, mr.RemoteRead)
	require.NoError(t, err)
	require.Equal(t, "345678", string(s.Bytes()))
	require.Equal(t, "567", string(s.Sub(2, 3).Bytes()))
	require.Empty(t, s.Sub(6, 0).Bytes())
	for _, bad := range [][2]uint32{{0, 7}, {7, 0}, {6, 1}, {math.MaxUint32, 2}} {
		require.Panics(t, func() { s.Sub(bad[0], bad[1]) })
	}
}
