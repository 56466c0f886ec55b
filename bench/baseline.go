package bench

import (
	"os/exec"
	"strconv"
	"strings"
)

// Baseline is something else that moves the same sizes in the same run.
type Baseline string

// The baselines.
const (
	// BaselineTCP is Go's net over one TCP connection between the same processes.
	BaselineTCP Baseline = "tcp"
	// BaselineShm is a ring in memory that the two processes share: two copies, as
	// a socket makes, and nothing else.
	BaselineShm Baseline = "shm"
	// BaselineMemcpy is a copy between two buffers of one process.
	BaselineMemcpy Baseline = "memcpy"
	// BaselineUCX and BaselineUCXGet are one-sided puts and gets of UCX over TCP.
	BaselineUCX    Baseline = "ucx"
	BaselineUCXGet Baseline = "ucx-get"
	// BaselineIperf3 is iperf3's TCP stream.
	BaselineIperf3 Baseline = "iperf3"
	// BaselineLibfabric is libfabric's ping-pong over its TCP provider, one message
	// in flight.
	BaselineLibfabric Baseline = "libfabric"
)

// baselineKind is what a baseline is made by.
type baselineKind struct {
	name Baseline
	// about explains it under tables, "" when the connection tells.
	about string
	// program runs it, nil when this one does.
	program *program
	// local: both processes must be on this machine.
	local bool
	open  func(s *session, size int) mover
}

// baselineKinds are all baselines in the order in which they are shown.
var baselineKinds = []baselineKind{
	{name: BaselineTCP, open: func(s *session, size int) mover { return &tcpMover{s: s, size: size} }},
	{
		name: BaselineShm, about: "a ring in shared memory between the two processes, which wait spinning: two copies a byte, the limit of a socket path",
		local: true, open: func(s *session, size int) mover { return &shmMover{s: s, size: size} },
	},
	{
		name: BaselineMemcpy, about: "a copy in one process; no message, so no latency",
		open: func(s *session, size int) mover { return &memcpyMover{ep: s.ep, size: size} },
	},
	foreignKind(BaselineUCX, &ucxPut),
	foreignKind(BaselineUCXGet, &ucxGet),
	foreignKind(BaselineIperf3, &iperf3),
	foreignKind(BaselineLibfabric, &libfabric),
}

// foreign reports whether another program moves the bytes, which nobody compares.
func (b Baseline) foreign() bool {
	k := b.kind()
	return k != nil && k.program != nil
}

// label is the name in tables. It tells of a program that waits for each message before
// the next, since its bandwidth is no pipeline's.
func (b Baseline) label() string {
	if k := b.kind(); k != nil && k.program != nil && k.program.alone {
		return string(b) + " (1 in flight)"
	}
	return string(b)
}

// foreignKind is a baseline that another program measures.
func foreignKind(name Baseline, p *program) baselineKind {
	return baselineKind{
		name: name, about: p.about, program: p, local: true,
		open: func(s *session, size int) mover { return &foreignMover{nets: &s.nets, program: p, size: size} },
	}
}

// AllBaselines returns every baseline.
func AllBaselines() []Baseline {
	out := make([]Baseline, len(baselineKinds))
	for i := range baselineKinds {
		out[i] = baselineKinds[i].name
	}
	return out
}

// kind finds what makes a baseline, nil for one that does not exist.
func (b Baseline) kind() *baselineKind {
	for i := range baselineKinds {
		if baselineKinds[i].name == b {
			return &baselineKinds[i]
		}
	}
	return nil
}

// Missing is a baseline that was asked for and could not run.
type Missing struct {
	Name Baseline `json:"name"`
	// Why says what is missing, such as "not installed: package ucx-utils".
	Why string `json:"why"`
}

// present divides baselines into those that can run and the others.
func (c Config) present() (can []Baseline, missing []Missing) {
	can = []Baseline{}
	for _, b := range c.Baselines {
		if why := c.absent(b.kind()); why != "" {
			missing = append(missing, Missing{b, why})
		} else {
			can = append(can, b)
		}
	}
	return can, missing
}

// absent says why a baseline cannot run, "" when it can.
func (c Config) absent(k *baselineKind) string {
	if k.local && c.Peer != "" {
		return "needs the peer on this machine"
	}
	if k.local && !haveShared {
		return "needs Linux"
	}
	if k.program == nil {
		return ""
	}
	if _, err := exec.LookPath(k.program.file); err != nil {
		return "not installed: package " + k.program.pkg
	}
	return canIsolate()
}

func parseBaseline(s string) (Baseline, error) {
	if b := Baseline(s); b.kind() != nil {
		return b, nil
	}
	return "", &FlagError{
		Flag: "baseline", Given: strconv.Quote(s), Allowed: BaselineNames() + ", or none alone",
		Do: "give one or several separated by commas",
	}
}

// BaselineNames lists them for a person to read.
func BaselineNames() string {
	return strings.Join(strings.Split(join(AllBaselines(), func(b Baseline) string { return string(b) }), ","), ", ")
}
