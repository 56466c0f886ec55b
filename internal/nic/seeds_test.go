package nic_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport/sim"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run only this seed of TestSeeds")
	seedsFlag = flag.Int("seeds", 0, "number of seeds of TestSeeds (default 1000, fewer under the race detector)")
)

// TestSeeds runs mixed operations between several queue pairs over networks that
// lose, duplicate, reorder or corrupt up to 30 % of the packets, and do the rest of
// it to up to 10 %. Every byte must
// be right, every completion come once and in order, and nothing be left over.
// Half the seeds run on memory whose copies and fetches finish late and out of
// order.
func TestSeeds(t *testing.T) {
	first, last := uint64(1), uint64(*seedsFlag)
	if last == 0 {
		last = defaultSeeds
	}
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	var sum nic.Stats
	for seed := first; seed <= last; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.run()
			w.verify()
			for _, n := range w.fabric.NICs {
				s := n.Stats()
				sum.RC.Retransmitted += s.RC.Retransmitted
				sum.RC.Duplicates += s.RC.Duplicates
				sum.RC.AtomicsReplayed += s.RC.AtomicsReplayed
				sum.RC.ReadsReplayed += s.RC.ReadsReplayed
				sum.RC.RNRsSent += s.RC.RNRsSent
				sum.RC.ImpliedNAKs += s.RC.ImpliedNAKs
				sum.Drops[nic.DropICRC] += s.Drops[nic.DropICRC]
			}
		})
		if !ok {
			t.Fatalf("replay: go test ./internal/nic -run TestSeeds -seed=%d", seed)
		}
	}
	if *seedFlag != 0 {
		return
	}
	// The seeds must have exercised what they are for.
	exercised := map[string]uint64{
		"retransmissions": sum.RC.Retransmitted, "duplicates": sum.RC.Duplicates, "atomic replays": sum.RC.AtomicsReplayed,
		"READ replays": sum.RC.ReadsReplayed, "RNR NAKs": sum.RC.RNRsSent, "implied NAKs": sum.RC.ImpliedNAKs,
		"bad ICRCs": sum.Drops[nic.DropICRC],
	}
	t.Log(exercised)
	for name, n := range exercised {
		require.Positive(t, n, name)
	}
	// Nothing of a thousand closed networks is left.
	for range 3 { // what pools and finalizers let go of is collected later
		runtime.GC()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	require.Less(t, mem.HeapAlloc, uint64(64<<20), "memory is bounded")
}

// The same seed gives the same packets.
func TestSeedReplays(t *testing.T) {
	trace := func(seed uint64) uint64 {
		w := newWorld(t, seed)
		w.run()
		return w.fabric.Net.Trace()
	}
	for seed := uint64(1); seed <= 6; seed++ {
		require.Equal(t, trace(seed), trace(seed), "seed %d", seed)
	}
	require.NotEqual(t, trace(1), trace(2))
}

// world is a network of hosts whose queue pairs exercise each other.
type world struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	late   bool
	fabric *nictest.Fabric
	hosts  []*hostMem
	ends   []*endModel
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{t: t, seed: seed, rng: rng, late: seed%2 == 0}
	// One fault hits up to 30 % of the packets, each other one up to 10 %: more,
	// and a round trip would hardly ever get through.
	var part [4]float64
	for i := range part {
		part[i] = 0.1 * rng.Float64()
	}
	part[rng.IntN(len(part))] = 0.3 * rng.Float64()
	hosts := 2 + rng.IntN(3)
	window := []int{0, 64 << 10}[seed/2%2]
	w.fabric = nictest.New(t, nictest.Config{
		Hosts: hosts, IPv6: rng.IntN(4) == 0,
		Tune: func(_ int, c *nic.Config) { c.PathWindow = window },
		Net: sim.Config{Seed: seed, Trains: rng.IntN(2) * 16, Link: sim.Link{
			Delay: time.Duration(1+rng.IntN(100)) * time.Microsecond, Jitter: time.Duration(rng.IntN(50)) * time.Microsecond,
			Loss: part[0], Duplicate: part[1], Reorder: part[2], Corrupt: part[3],
		}},
	})
	for i := range hosts {
		w.hosts = append(w.hosts, w.newHost(i))
	}
	for range 1 + rng.IntN(4) {
		a := rng.IntN(hosts)
		b := (a + 1 + rng.IntN(hosts-1)) % hosts
		w.connect(a, b)
	}
	return w
}

func (w *world) connect(a, b int) {
	mtu := []roce.PathMTU{roce.MTU256, roce.MTU512, roce.MTU1024, roce.MTU4096}[w.rng.IntN(4)]
	cfg := nictest.PairConfig{
		MTU: mtu, Timeout: 14, MaxReads: 1 + w.rng.IntN(8), ForeignIDs: w.rng.IntN(2) == 0,
		PSN: [2]roce.PSN{roce.PSN(0xFFFFFF - w.rng.IntN(20)), roce.PSN(w.rng.IntN(1 << 24))},
	}
	cfg.PDs = [2]*mr.PD{w.hosts[a].pd, w.hosts[b].pd}
	x, y := w.fabric.Pair(a, b, cfg)
	e, f := w.newEnd(x, a), w.newEnd(y, b)
	e.peer, f.peer = f, e
}

// run lets every end do its operations.
func (w *world) run() {
	limit := w.fabric.Now().Add(5 * time.Minute)
	for !w.finished() {
		for _, e := range w.ends {
			e.work()
		}
		w.fabric.Settle()
		for _, e := range w.ends {
			e.collect()
		}
		if w.finished() {
			return
		}
		if !w.fabric.Step() {
			require.True(w.t, w.moreToPost(), "deadlock: nothing will ever happen again")
		}
		require.Less(w.t, w.fabric.Now(), limit, "not done within 5 minutes of virtual time")
	}
}

// moreToPost reports whether it is the test itself that the fabric waits for.
func (w *world) moreToPost() bool {
	for _, e := range w.ends {
		if e.left > 0 || len(e.unposted) > 0 {
			return true
		}
	}
	return false
}

func (w *world) finished() bool {
	for _, e := range w.ends {
		if !e.finished() {
			return false
		}
	}
	return true
}

// verify compares all memory with what it must hold, and looks for leftovers.
func (w *world) verify() {
	for _, e := range w.ends {
		sends, receives := e.Outstanding()
		require.Zero(w.t, sends+receives)
	}
	w.fabric.Run(time.Second)
	for _, h := range w.hosts {
		h.atomics()
	}
	for _, h := range w.hosts {
		h.verify()
	}
	for _, e := range w.ends {
		require.Empty(w.t, e.Take(e.Send), "a completion too many")
		require.Empty(w.t, e.Take(e.Recv), "a completion too many")
		e.Close()
	}
	for _, h := range w.hosts {
		require.Zero(w.t, h.region.Lent(), "spans still lent")
		require.NoError(w.t, h.region.Deregister(w.t.Context()))
		require.NoError(w.t, h.pd.Dealloc())
	}
}
