package hostiletest

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/transport/sim"
)

var (
	packetsFlag = flag.Int("packets", 0, "packets that TestHostile throws (default 1,000,000, fewer under the race detector)")
	seedFlag    = flag.Uint64("seed", 0, "run only this world of TestHostile")
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// perWorld is how many packets a NIC gets before the next one takes its place.
const perWorld = 5000

// tally is what happened over all worlds, to see that everything did.
type tally struct {
	drops  [nic.NumDrops]uint64
	reply  map[[2]byte]uint64
	status map[cq.Status]uint64
}

func newTally() *tally {
	return &tally{reply: map[[2]byte]uint64{}, status: map[cq.Status]uint64{}}
}

// TestHostile throws a million packets at live NICs. Those from wrong addresses,
// badly sealed or outside the window change nothing; those that are sealed and in
// sequence do what the model says, the error state included; honest connections
// work throughout, and new ones can be made afterwards.
func TestHostile(t *testing.T) {
	packets := *packetsFlag
	if packets == 0 {
		packets = defaultPackets
	}
	first, last := uint64(1), uint64((packets+perWorld-1)/perWorld)
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	seen := newTally()
	var baseline uint64
	for seed := first; seed <= last; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) { bombard(t, seed, perWorld, seen) })
		if !ok {
			t.Fatalf("replay: go test ./internal/nic/hostiletest -run TestHostile -seed=%d", seed)
		}
		switch heap := liveHeap(); {
		case seed == first+3:
			baseline = heap
		case baseline > 0 && heap > baseline+16<<20:
			t.Fatalf("%d bytes are live after %d worlds, %d after three", heap, seed-first+1, baseline)
		}
	}
	if *seedFlag == 0 {
		seen.complete(t)
	}
}

// liveHeap is what is reachable; it costs a collection, so that is done rarely.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func bombard(t *testing.T, seed uint64, packets int, seen *tally) {
	cfg := sim.Config{Seed: seed, HideHeaders: seed%3 == 0, Trains: int(seed%2) * 16}
	w := newWorld(t, seed, simulated(t, cfg, seed%5 == 0), 10, seen)
	for w.packets < packets {
		w.step()
	}
	w.finish(3)
}

// finish checks that the NIC is as good as new, by connections made now.
func (w *world) finish(connections int) {
	w.live.exercise()
	for range connections {
		p := w.newPair()
		p.exercise()
		p.close()
	}
	for _, c := range append([]*conn{}, w.conns...) {
		w.destroy(c)
	}
	w.live.close()
	require.NoError(w.t, w.nic.Close())
	require.NoError(w.t, w.honest.Close())
	for _, h := range w.hosts[hostStranger:] {
		require.NoError(w.t, h.conn.Close())
	}
	require.NoError(w.t, w.srq.srq.Close())
	for _, r := range w.regions {
		if r.real != nil {
			w.revoke(r)
		}
	}
	for _, pd := range w.pds {
		require.NoError(w.t, pd.Dealloc())
	}
	require.NoError(w.t, w.host.host.Close())
}

// complete fails when something was never seen.
func (s *tally) complete(t *testing.T) {
	t.Logf("drops %v", s.drops)
	t.Logf("answers %v", s.reply)
	t.Logf("completions %v", s.status)
	for d, n := range s.drops {
		switch nic.Drop(d) {
		case nic.DropAddress: // the network delivers by address
		case nic.DropMemory: // no memory here is a device.Congester
		default:
			require.NotZero(t, n, "no drop for %v", nic.Drop(d))
		}
	}
	for _, r := range [][2]byte{
		{opReadFirst, synACK},
		{opReadMiddle, 0},
		{opReadLast, synACK},
		{opReadOnly, synACK},
		{opAtomicAck, synACK},
		{opCNP, 0},
		{opAck, synACK},
		{opAck, nakSequence},
		{opAck, nakInvalid},
		{opAck, nakAccess},
		{opAck, synRNR},
		{opAck, synRNR + 31},
	} {
		require.NotZero(t, s.reply[r], "no answer of opcode %#x and syndrome %#x", r[0], r[1])
	}
	for _, st := range []cq.Status{
		cq.StatusSuccess, cq.StatusLocalLength, cq.StatusLocalQPOperation, cq.StatusFlushed, cq.StatusBadResponse, cq.StatusLocalAccess,
		cq.StatusRemoteInvalid, cq.StatusRemoteAccess, cq.StatusRemoteOperation, cq.StatusRNRRetryExceeded, cq.StatusRemoteInvalidRD,
	} {
		require.NotZero(t, s.status[st], "no completion with status %v", st)
	}
}

// A smaller run over real sockets.
func TestHostileSockets(t *testing.T) {
	seen := newTally()
	deadline := time.Now().Add(time.Minute)
	w := newWorld(t, 1, overSockets(t), 8, seen)
	for w.packets < defaultSocketPackets && time.Now().Before(deadline) {
		w.step()
	}
	w.finish(3)
}
