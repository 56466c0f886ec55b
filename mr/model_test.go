package mr_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
)

// modelTable is a table as one would write it without thinking of speed.
type modelTable struct {
	real  *mr.Table
	pds   []*mr.PD
	mem   *host.Memory
	byKey map[uint32]*modelRegion // both kinds
	live  []*modelRegion
	stale []uint32
}

type modelRegion struct {
	r           *mr.Region
	invalidated bool
}

// allowed is the rules of §6 written with big numbers instead of care.
func (m *modelTable) allowed(pd *mr.PD, key uint32, va uint64, n uint32, need mr.Access, remote bool) bool {
	e := m.byKey[key]
	switch {
	case e == nil, remote && (key != e.r.RKey() || e.invalidated), !remote && key != e.r.LKey():
		return false
	case e.r.PD() != pd, need&^e.r.Access() != 0:
		return false
	}
	first, last := float64(va), float64(va)+float64(n) // test addresses are below 2^53
	return first >= float64(e.r.Addr()) && last <= float64(e.r.Addr())+float64(e.r.Len())
}

func (m *modelTable) register(t *rapid.T) {
	o := mr.Options{Off: rapid.Uint64Range(0, m.mem.Size()).Draw(t, "off")}
	o.Len = rapid.Uint64Range(0, m.mem.Size()-o.Off).Draw(t, "len")
	o.Access = mr.LocalWrite | rapid.SampledFrom([]mr.Access{
		0, mr.RemoteRead, mr.RemoteWrite | mr.RemoteAtomic, mr.RemoteRead | mr.RemoteInvalidate,
	}).Draw(t, "access")
	r, err := rapid.SampledFrom(m.pds).Draw(t, "pd").Register(m.mem, o)
	require.NoError(t, err)
	e := &modelRegion{r: r}
	for _, key := range []uint32{r.LKey(), r.RKey()} {
		require.NotContains(t, m.byKey, key)
		require.NotContains(t, m.stale, key)
		require.NotZero(t, key)
		m.byKey[key] = e
	}
	m.live = append(m.live, e)
}

func (m *modelTable) deregister(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to deregister")
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(t, "i")
	r := m.live[i].r
	require.NoError(t, r.Deregister(t.Context()))
	m.live = slices.Delete(m.live, i, i+1)
	for _, key := range []uint32{r.LKey(), r.RKey()} {
		delete(m.byKey, key)
		m.stale = append(m.stale, key)
	}
}

func (m *modelTable) invalidate(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to invalidate")
	}
	e := rapid.SampledFrom(m.live).Draw(t, "region")
	pd := rapid.SampledFrom(m.pds).Draw(t, "pd")
	legal := !e.invalidated && e.r.PD() == pd && e.r.Access()&mr.RemoteInvalidate != 0
	require.Equal(t, legal, pd.InvalidateRemote(e.r.RKey()) == nil)
	e.invalidated = e.invalidated || legal
}

// key is one that might work, one that did once, or any.
func (m *modelTable) key(t *rapid.T) (uint32, uint64) {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		return rapid.Uint32().Draw(t, "key"), 0
	case kind == 1 && len(m.stale) > 0:
		return rapid.SampledFrom(m.stale).Draw(t, "stale"), 0
	case len(m.live) == 0:
		return 0, 0
	}
	r := rapid.SampledFrom(m.live).Draw(t, "region").r
	if rapid.Bool().Draw(t, "remote key") {
		return r.RKey(), r.Addr()
	}
	return r.LKey(), r.Addr()
}

func (m *modelTable) access(t *rapid.T) {
	key, base := m.key(t)
	va := base + rapid.Uint64Range(0, m.mem.Size()+2).Draw(t, "offset") - 1
	n := rapid.Uint32Range(0, uint32(m.mem.Size())+2).Draw(t, "n")
	need := rapid.SampledFrom([]mr.Access{0, mr.LocalWrite, mr.RemoteRead, mr.RemoteWrite, mr.RemoteAtomic}).Draw(t, "need")
	pd := rapid.SampledFrom(m.pds).Draw(t, "pd")
	if va > 1<<52 {
		va = 1 << 52
	}
	s, err := pd.Remote(key, va, n, need)
	require.Equal(t, m.allowed(pd, key, va, n, need, true), err == nil)
	m.checkSpan(t, s, err, key, va, n)
	s, err = pd.Local(mr.SGE{Addr: va, Length: n, LKey: key}, need)
	require.Equal(t, m.allowed(pd, key, va, n, need, false), err == nil)
	m.checkSpan(t, s, err, key, va, n)
}

func (m *modelTable) checkSpan(t *rapid.T, s mr.Span, err error, key uint32, va uint64, n uint32) {
	if err != nil {
		require.Zero(t, s)
		return
	}
	r := m.byKey[key].r
	require.Same(t, r, s.Region)
	require.Equal(t, r.MemOff()+va-r.Addr(), s.Off)
	require.Equal(t, n, s.Len)
	require.LessOrEqual(t, s.Off+uint64(n), m.mem.Size())
}

func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, err := mr.NewTable(mr.Config{Rand: rand.NewChaCha8([32]byte{rapid.Byte().Draw(t, "secret")})})
		require.NoError(t, err)
		m := &modelTable{
			real: table, mem: host.New(make([]byte, 50)), byKey: make(map[uint32]*modelRegion),
			pds: []*mr.PD{table.AllocPD(), table.AllocPD()},
		}
		t.Repeat(map[string]func(*rapid.T){
			"register":   m.register,
			"deregister": m.deregister,
			"invalidate": m.invalidate,
			"access":     m.access,
			"":           func(t *rapid.T) { require.Equal(t, len(m.live), m.real.Live()) },
		})
	})
}

// A slot is used again and again and again, and no old key ever works.
func TestStaleKeysThroughManyReuses(t *testing.T) {
	table := newTable(t, mr.Config{MaxRegions: 4})
	pd := table.AllocPD()
	mem := host.New(make([]byte, 64))
	keep := register(t, pd, mem, mr.Options{Access: mr.RemoteRead})
	var old []uint32
	for i := range 100_000 { // more than wait in quarantine
		r := register(t, pd, mem, mr.Options{Access: mr.RemoteRead})
		if i%97 == 0 {
			old = append(old, r.RKey())
		}
		if err := r.Deregister(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	live := register(t, pd, mem, mr.Options{Access: mr.RemoteRead})
	for _, key := range old {
		_, err := pd.Remote(key, live.Addr(), 1, mr.RemoteRead)
		require.Equal(t, error(mr.FaultKey), err)
	}
	_, err := pd.Remote(keep.RKey(), keep.Addr(), 64, mr.RemoteRead)
	require.NoError(t, err)
	require.Equal(t, 2, table.Live())
}

// Guessing finds nothing: with 1,000 regions a random key names one once in two
// million tries.
func TestRandomKeysFindNothing(t *testing.T) {
	table := newTable(t, mr.Config{Rand: rand.NewChaCha8([32]byte{1})})
	pd := table.AllocPD()
	mem := host.New(make([]byte, 64))
	for range 1000 {
		register(t, pd, mem, mr.Options{Access: mr.RemoteRead})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range 200_000 {
		if _, err := pd.Remote(rng.Uint32(), 0, 0, 0); err != mr.FaultKey { //nolint:errorlint // a Fault comes bare
			hits++
		}
	}
	require.LessOrEqual(t, hits, 3)
}
