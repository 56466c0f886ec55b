//go:build linux

package matrix

import (
	"context"
	"strings"

	"github.com/gohixl/hixl/interop/bridge"
)

// Role is what our end of a cell is.
type Role string

// The roles. With None both ends are rdma_rxe: such cells show that the lab and
// its faults do no harm of their own.
const (
	Client Role = "client"
	Server Role = "server"
	None   Role = "none"
)

var bothRoles = []Role{Client, Server}

// Cell is a row of the table: what is done, in one or both roles. One of Verbs,
// Tool and Do says how.
type Cell struct {
	Name   string // unique
	Group  string // of the report
	Family int    // 4 (also 0) or 6
	Roles  []Role // both when empty
	Smoke  bool   // part of the short run
	Faults bridge.Faults
	Drop   []bridge.Rule

	// Verbs is a case of the guests' verbs tool and of our end of it, in words.
	Verbs string
	Want  Want
	// Trains switches trains of ours "on", and expects some where ours sends bulk,
	// or "off".
	Trains string
	// Veth puts both ends of a Verbs cell into a guest, on the two ends of a veth
	// pair, instead of on the bridge.
	Veth bool

	// Tool is a pair of programs.
	Tool *Tool

	// Do is a test of its own. It returns what to say of it.
	Do func(ctx context.Context, b *Bench, role Role) (detail string, err error)
}

// Want is what a Verbs cell is expected to show; the zero value is success: all
// completions, all bytes.
type Want struct {
	// Status is of the first completion of the active end, as verbs number it;
	// PeerStatus of the first receive of the passive one. Nothing is delivered
	// then.
	Status, PeerStatus int
	// RxeStatus and RxePeerStatus take their place when rdma_rxe is passive and
	// says it otherwise.
	RxeStatus, RxePeerStatus int
	// Lost allows messages to be missing, and says that some must have arrived.
	Lost bool
	// Nothing arrives although the sender sees no error.
	Nothing bool
	// Resent expects packets to be sent again.
	Resent bool
}

// Tool is a pair of programs, each of which can be either end.
type Tool struct {
	Program        string // of ours; hixl when empty
	Theirs, Ours   Ends
	Ready          string // where a server listens: tcp, on the tools' port, or cm
	Says           string // regular expression that the client's output must match
	ServerSays     string // and the server's
	Fails          bool   // the client must not succeed
	ServerIsKilled bool   // since it does not end by itself
	Slow           string // options that both ends get when processors are emulated
}

// Ends are the command lines of a program as server and as client. In them,
// {self} and {peer} are addresses, {tcp} is the peer's IPv4 address, {gid} the
// index of the guest's GID.
type Ends struct{ Server, Client string }

// line is the command line for a role.
func (e Ends) line(r Role) string {
	if r == Server {
		return e.Server
	}
	return e.Client
}

func (c *Cell) family() int {
	if c.Family == 0 {
		return 4
	}
	return c.Family
}

func (c *Cell) roles() []Role {
	if len(c.Roles) == 0 {
		return bothRoles
	}
	return c.Roles
}

// fill replaces what is in braces.
func fill(line string, values map[string]string) string {
	for k, v := range values {
		line = strings.ReplaceAll(line, "{"+k+"}", v)
	}
	return line
}
