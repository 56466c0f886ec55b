//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/gohixl/hixl/interop/agent"
	"github.com/gohixl/hixl/interop/bridge"
	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/tshark"
	"github.com/gohixl/hixl/interop/verbs"
)

// Limits of a cell.
const (
	cellLimit  = 45 * time.Second
	slowFactor = 3 // for emulated processors
	readyPoll  = 10 * time.Millisecond
	endLimit   = 20 * time.Second // for the server to end after the client
	attempts   = 3
)

// Bench runs cells in a lab.
type Bench struct {
	Lab  *lab.Lab
	Hixl string // the binary under test
	Dir  string // for captures
	// Keep keeps the captures of cells that passed.
	Keep bool

	carrier  Carrier         // of our end in the cell that runs
	captures []string        // not yet seen by hixl dump and tshark
	keep     map[string]bool // those of cells that failed
	packets  int             // in captures
	dumped   Counts
	decoded  tshark.Result
	failed   error                     // of hixl dump and tshark
	serving  map[string]*agent.Process // verbs tools, by guest
}

// Outcome is what became of a cell in one role, as the report has it.
type Outcome struct {
	Case string `json:"case"`
	Role Role   `json:"role"`
	// Carrier is what our end was on, if not sockets.
	Carrier string `json:"carrier,omitempty"`
	Peer    string `json:"peer"`
	Status  string `json:"status"` // Pass or Fail
	Detail  string `json:"detail"`

	// Log is the file that says more of a failure, beside its capture.
	Log string `json:"-"`

	group   string
	traffic Traffic
	took    time.Duration
	late    bool // it is not the first attempt
	damage  bool // bytes were wrong
}

// What becomes of a cell.
const (
	Pass = "pass"
	Fail = "fail"
)

// Run runs a cell in one role. Guests share this machine with whatever else it
// does, and may stand still for longer than a tool's timeouts last. So a cell that
// failed, but not over wrong bytes, has another chance, of which its detail and the report tell; what the
// earlier ones left stays.
func (b *Bench) Run(ctx context.Context, c *Cell, role Role) Outcome {
	o := b.once(ctx, c, role, "")
	for n := 1; n < attempts && o.Status != Pass && !o.damage && ctx.Err() == nil; n++ {
		again := b.once(ctx, c, role, fmt.Sprintf(".again%d", n))
		again.late = true
		if again.Log == "" {
			again.Log = o.Log
		}
		again.Detail = join(again.Detail, "at another attempt, the one before: "+o.Detail)
		o = again
	}
	return o
}

// once runs a cell; attempt tells its files from those of another attempt.
func (b *Bench) once(ctx context.Context, c *Cell, role Role, attempt string) Outcome {
	o := Outcome{Case: c.Name, Role: role, Peer: b.peer(), Status: Pass, group: c.Group}
	if b.carrier != Sockets {
		o.Carrier = b.carrier.String()
		o.group = o.Carrier + ": " + c.Group
		attempt = "." + string(b.carrier) + attempt
	}
	start := time.Now()
	capture := filepath.Join(b.Dir, fileName(c.Name)+"."+string(role)+attempt+".pcap")
	detail, err := b.run(ctx, c, role, capture, &o.traffic)
	o.took = time.Since(start)
	o.Detail = detail
	if err != nil {
		o.Status, o.damage = Fail, errors.Is(err, ErrDamage)
		o.Log = b.note(ctx, capture, err)
		o.Detail = brief(err.Error())
		if detail != "" {
			o.Detail += " (" + detail + ")"
		}
	}
	return o
}

// emulated reports whether the guests' processors are.
func (b *Bench) emulated() bool { return b.Lab.Image.Backend == lab.QEMU }

// patience is a limit for the guests at hand.
func (b *Bench) patience(limit time.Duration) time.Duration {
	if b.emulated() {
		return slowFactor * limit
	}
	return limit
}

func (b *Bench) peer() string {
	what := "user-mode Linux"
	if b.emulated() {
		what = "Debian's kernel"
	}
	return fmt.Sprintf("rdma_rxe of Linux %s, %s", b.Lab.Image.Release, what)
}

func (b *Bench) run(ctx context.Context, c *Cell, role Role, capture string, t *Traffic) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience(cellLimit))
	defer cancel()
	b.Lab.Switch.Reset()
	if err := b.Lab.Capture(capture); err != nil {
		return "", err
	}
	if err := b.Lab.Switch.SetFaults("", c.Faults); err != nil {
		return "", err
	}
	for _, r := range c.Drop {
		b.Lab.Switch.Drop(r)
	}
	for _, g := range b.Lab.Guests {
		go func(ended <-chan struct{}) {
			select {
			case <-ended:
				cancel() // nobody would answer
			case <-ctx.Done():
			}
		}(g.Ended())
	}
	detail, err := b.dispatch(ctx, c, role)
	err = errors.Join(err, b.revive(ctx))
	counts := b.Lab.Switch.Total()
	b.Lab.Switch.Reset()
	if end := b.Lab.Capture(""); end != nil {
		return detail, end
	}
	if counts.Faults() > 0 {
		detail = join(detail, "bridge: "+counts.String())
	}
	traffic, bad := Inspect(capture)
	*t = traffic
	if traffic.Packets > 0 {
		detail = join(detail, traffic.String())
	}
	if err == nil || bad != nil {
		err = errors.Join(err, bad)
	}
	if err == nil && c.Faults != (bridge.Faults{}) && counts.Faults() == 0 {
		err = wrong("the bridge did no harm")
	}
	if err == nil && c.Want.Resent && traffic.Resent == 0 {
		err = wrong("nothing was sent again")
	}
	if err == nil && counts.Overflow > 0 {
		err = wrong("the bridge overflowed: %v", counts)
	}
	b.captures = append(b.captures, capture)
	b.packets += traffic.Packets
	if err != nil {
		b.keep[capture] = true
	}
	return detail, err
}

// revive boots guests again that have ended, which is an error: a kernel does not
// end over packets.
func (b *Bench) revive(ctx context.Context) error {
	var dead error
	for _, g := range b.Lab.Guests {
		select {
		case <-g.Ended():
		default:
			continue
		}
		if p := b.serving[g.Name]; p != nil {
			p.Kill() // nothing else tells of it
			delete(b.serving, g.Name)
		}
		dead = errors.Join(dead, wrong("%s ended: %s", g.Name, g.Console(3)), g.Restart(context.WithoutCancel(ctx)))
	}
	return dead
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func (b *Bench) dispatch(ctx context.Context, c *Cell, role Role) (string, error) {
	switch {
	case c.Verbs != "":
		return b.verbs(ctx, c, role)
	case c.Tool != nil:
		return b.tool(ctx, c, role)
	}
	return c.Do(ctx, b, role)
}

// fileName makes a name that any file system takes.
func fileName(s string) string {
	b := []byte(s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' {
			b[i] = '-'
		}
	}
	return string(b)
}

// serveVerbs makes sure that the verbs tool serves in a guest.
func (b *Bench) serveVerbs(ctx context.Context, g *lab.Guest) error {
	if p := b.serving[g.Name]; p != nil {
		select {
		case <-p.Done():
		default:
			return nil
		}
	}
	p, err := g.Start(context.WithoutCancel(ctx), "verbs serve")
	if err != nil {
		return err
	}
	if b.serving == nil {
		b.serving = make(map[string]*agent.Process)
	}
	b.serving[g.Name] = p
	return await(ctx, func() bool {
		_, err := g.Run(ctx, listening(verbs.Port))
		return err == nil
	})
}

// listening is a shell command that succeeds when a TCP port is listened on.
func listening(port string) string {
	p, err := net.LookupPort("tcp", port)
	if err != nil {
		return "false"
	}
	return fmt.Sprintf("grep -q ':%04X [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6", p)
}

// await polls until ready, or the context's end.
func await(ctx context.Context, ready func() bool) error {
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyPoll):
		}
	}
	return nil
}
