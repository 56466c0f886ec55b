package bench

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Limits of a run.
const (
	// MaxQPs is the largest number of queue pairs of a cell.
	MaxQPs = 4096
	// MaxDepth is the largest number of messages outstanding on a queue pair.
	MaxDepth = 8192
	// MaxRounds is the largest number of rounds, and of passes.
	MaxRounds = 1000
	// MaxRegion is the largest region in bytes.
	MaxRegion = 4 << 30
	// DefaultRegion is larger than a usual L2 cache, so that transfers walk
	// through memory as an application's would.
	DefaultRegion = 16 << 20
	// DefaultDuration and DefaultRounds keep a run of everything under a minute.
	DefaultDuration = 600 * time.Millisecond
	DefaultRounds   = 3
	// DefaultPort is the control port of a remote peer.
	DefaultPort = 18515
)

// Faults are the probabilities, 0 to [MaxFault], with which each packet that a
// NIC sends is lost, kept back behind later ones, doubled or damaged. They are
// injected between NIC and socket on both sides.
type Faults struct {
	Loss      float64 `json:"loss"`
	Reorder   float64 `json:"reorder"`
	Duplicate float64 `json:"duplicate"`
	Corrupt   float64 `json:"corrupt"`
}

// MaxFault is the largest probability of a fault: above it a reliable
// connection gives up before it gets through.
const MaxFault = 0.3

func (f Faults) any() bool { return f != Faults{} }

// validate refuses a probability outside 0..MaxFault.
func (f Faults) validate() error {
	for _, p := range []struct {
		name string
		v    float64
	}{{"loss", f.Loss}, {"reorder", f.Reorder}, {"duplicate", f.Duplicate}, {"corrupt", f.Corrupt}} {
		if !(p.v >= 0 && p.v <= MaxFault) { // NaN too
			return &FlagError{
				Flag: p.name, Given: fmt.Sprint(p.v), Allowed: fmt.Sprintf("0 to %v", MaxFault),
				Do: "give a probability per packet, such as 0.01",
			}
		}
	}
	return nil
}

// Config says what [Run] measures. The zero value is the default run.
type Config struct {
	// Ops, Sizes, QPs, Depths and MTUs span the cells: each combination is one.
	// Empty: all operations; 64, 4 KiB, 64 KiB, 1 MiB; 1 queue pair; depth 0;
	// MTU 0. Depth 0 is 64, fewer when that would be more than 8 MiB a queue pair
	// or 8192 messages in all, at least 4; MTU 0 is the largest that fits. Sizes do not apply to atomics, which move 8 bytes.
	Ops    []Op
	Sizes  []int
	QPs    []int
	Depths []int
	MTUs   []int
	// Duration is the timed bandwidth part of a cell, over all rounds; latency
	// takes half of it on top. 0: 600 ms.
	Duration time.Duration
	// Rounds is how often each cell and baseline is measured, 1..1000. 0: 3.
	Rounds int
	// Passes is how often [RunGoals] goes through all goals, each time with so many
	// rounds. What happens to a machine for a minute is then in one pass, and a goal
	// counts as reached when each of them reached it. 0: 1.
	Passes int
	// Baselines run in every round; nil: tcp and memcpy, empty: none. One that
	// cannot run here is left out, and the report says why.
	Baselines []Baseline
	// Region is the length in bytes of the source and of the destination through
	// which messages walk, ours as well as those of the baselines tcp, shm and
	// memcpy. 0: 16 MiB, more when a message needs it. Atomics stay on their counters,
	// and foreign programs in buffers of one message; results say what they walked.
	Region int
	// Memory is the kind of this side's regions, PeerMemory of the peer's, among
	// [MemoryKinds]; empty: the host's. Baselines always use the host's.
	Memory, PeerMemory string
	// Seed drives pattern and faults. 0: a random one, which the report names.
	Seed uint64
	// Faults is what happens to packets on purpose.
	Faults Faults
	// Local is this side's RoCE address, PeerLocal that of a peer on the same
	// machine. Zero: 127.0.0.1 and the address after Local; with Peer set, the
	// address that the control connection uses.
	Local, PeerLocal netip.Addr
	// InProcess runs the peer in this process.
	InProcess bool
	// Peer is the host or host:port of a [Listen]ing peer. Empty: a child process.
	Peer string
	// Pin holds the two processes of a run on this machine apart, each on its own
	// half of the cores that this one may use: ours, those of baselines and of foreign
	// programs alike. Without two cores, with a peer elsewhere or in this process, and
	// where the system cannot, nothing is pinned. The report says what was.
	Pin bool
	// PeerCommand is the program, with arguments, that calls [ServePeer] on its
	// standard input and output. Empty: this executable with argument "peer".
	PeerCommand []string
	// Carrier opens what carries our packets, which Transport names in the report;
	// nil: UDP sockets. A peer in another process has its own, see Opener.ServePeer.
	Carrier   Opener
	Transport string
	// NoTrains has both NICs send every packet on its own.
	NoTrains bool
	// Shards is how many sockets of each NIC receive, see udp.Config; 0 is the default.
	// Not on other carriers.
	Shards int
	// LowLatency has whoever waits, on both sides, look longer before it parks: the
	// NICs' Progress is hixl.LowLatency instead of hixl.Balanced.
	LowLatency bool
	// PeerStart calls start, which starts the peer process, where the peer is to
	// live; nil: here.
	PeerStart func(start func() error) error
	// Note, if not nil, hears what a person who waits wants to know: that the peer
	// serves somebody else, for one.
	Note func(string)

	missing []Missing  // baselines asked for that cannot run
	placed  *placement // where the two processes are held
}

// withDefaults fills what is not set.
func (c Config) withDefaults() Config {
	c.Ops = orDefault(c.Ops, AllOps())
	c.Sizes = orDefault(c.Sizes, []int{64, 4 << 10, 64 << 10, 1 << 20})
	c.QPs = orDefault(c.QPs, []int{1})
	c.Depths = orDefault(c.Depths, []int{0})
	c.MTUs = orDefault(c.MTUs, []int{0})
	if c.Baselines == nil {
		c.Baselines = []Baseline{BaselineTCP, BaselineMemcpy}
	}
	if c.Duration == 0 {
		c.Duration = DefaultDuration
	}
	if c.Rounds == 0 {
		c.Rounds = DefaultRounds
	}
	if c.Region == 0 {
		c.Region = c.regionFor()
	}
	if c.Seed == 0 {
		c.Seed = randomSeed()
	}
	return c.withAddresses()
}

// withAddresses fills the addresses of two NICs on this machine.
func (c Config) withAddresses() Config {
	if c.Peer != "" {
		return c
	}
	if !c.Local.IsValid() {
		c.Local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if !c.PeerLocal.IsValid() {
		c.PeerLocal = c.Local.Next()
	}
	return c
}

// regionFor is the default region: 16 MiB, or one slot a queue pair.
func (c Config) regionFor() int {
	size := atomicSize
	for _, s := range c.Sizes {
		size = max(size, s)
	}
	stride := (size + slotAlign - 1) / slotAlign * slotAlign
	return min(max(DefaultRegion, stride*slices.Max(c.QPs)), MaxRegion)
}

func orDefault[T any](v, def []T) []T {
	if len(v) == 0 {
		return def
	}
	return v
}
