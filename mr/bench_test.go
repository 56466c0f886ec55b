package mr_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
)

// populate registers n regions over one memory.
func populate(tb testing.TB, n int) (*mr.PD, []*mr.Region) {
	tb.Helper()
	pd := newTable(tb, mr.Config{Rand: rand.NewChaCha8([32]byte{})}).AllocPD()
	mem := host.New(make([]byte, 4096))
	regions := make([]*mr.Region, n)
	for i := range regions {
		regions[i] = register(tb, pd, mem, mr.Options{Access: remoteAll})
	}
	return pd, regions
}

func TestHundredThousandRegions(t *testing.T) {
	pd, regions := populate(t, 100_000)
	for i, r := range regions {
		s, err := pd.Remote(r.RKey(), r.Addr(), 4096, mr.RemoteWrite)
		if err != nil || s.Region != r {
			t.Fatalf("region %d: span %+v, error %v", i, s, err)
		}
	}
}

func TestDataPathAllocatesNothing(t *testing.T) {
	pd, regions := populate(t, 10)
	r := regions[3]
	sge := r.SGE(0, 4096)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		s, _ := pd.Remote(r.RKey(), r.Addr(), 4096, mr.RemoteWrite)
		if s.Acquire() {
			s.Release()
		}
		_, _ = pd.Local(sge, mr.LocalWrite)
		// Hostile packets cost nothing either.
		_, _ = pd.Remote(12345, 0, 1, mr.RemoteRead)
		_, _ = pd.Remote(r.RKey(), 0, 1, mr.RemoteRead)
		_ = pd.InvalidateRemote(r.RKey())
	}))
}

func BenchmarkRemote(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("regions=%d", n), func(b *testing.B) {
			pd, regions := populate(b, n)
			r := regions[n/2]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pd.Remote(r.RKey(), r.Addr(), 4096, mr.RemoteWrite); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a lookup among a hundred thousand regions costs, against one among ten, in
// turns: the ratio is the metric x-of-10.
func BenchmarkRemoteRatio(b *testing.B) {
	type side struct {
		pd  *mr.PD
		r   *mr.Region
		sum time.Duration
	}
	sides := [2]*side{}
	for i, n := range []int{10, 100_000} {
		pd, regions := populate(b, n)
		sides[i] = &side{pd: pd, r: regions[n/2]}
	}
	for b.Loop() {
		for _, s := range sides {
			began := time.Now()
			for range 10_000 {
				if _, err := s.pd.Remote(s.r.RKey(), s.r.Addr(), 4096, mr.RemoteWrite); err != nil {
					b.Fatal(err)
				}
			}
			s.sum += time.Since(began)
		}
	}
	b.ReportMetric(float64(sides[1].sum)/float64(sides[0].sum), "x-of-10")
}

func BenchmarkRemoteScattered(b *testing.B) {
	pd, regions := populate(b, 100_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(regions)
		if _, err := pd.Remote(regions[i].RKey(), regions[i].Addr(), 4096, mr.RemoteWrite); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRemoteRefused(b *testing.B) {
	pd, _ := populate(b, 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pd.Remote(0xdeadbeef, 0, 4096, mr.RemoteWrite); err == nil {
			b.Fatal("a made-up key was taken")
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	pd, regions := populate(b, 10)
	sge := regions[1].SGE(0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pd.Local(sge, mr.LocalWrite); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	_, regions := populate(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		if regions[0].Acquire() {
			regions[0].Release()
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	pd := newTable(b, mr.Config{}).AllocPD()
	mem := host.New(make([]byte, 4096))
	b.ReportAllocs()
	for b.Loop() {
		r, err := pd.Register(mem, mr.Options{Access: remoteAll})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Deregister(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
