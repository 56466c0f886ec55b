//go:build linux

package matrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gohixl/hixl/interop/lab"
)

// The report's files.
const (
	jsonFile = "report.json"
	textFile = "INTEROP.md"

	jsonFileXDP = "xdp-report.json" // of a run on raw frames
	textFileXDP = "INTEROP-XDP.md"
)

// Report is a run of the matrix.
type Report struct {
	Image    *lab.Image
	Command  string // that ran it
	Commit   string // of what was tested
	Host     string // kernel of the machine
	Tshark   string // version
	Dump     Counts // what hixl dump counted
	Decoded  int    // packets that tshark decoded alike
	Date     time.Time
	Outcomes []Outcome
}

// Failed returns the outcomes that are not a pass.
func (r *Report) Failed() []Outcome {
	var bad []Outcome
	for _, o := range r.Outcomes {
		if o.Status != Pass {
			bad = append(bad, o)
		}
	}
	return bad
}

// notTried is what the matrix leaves out, and why.
var notTried = []string{
	"Hardware NICs, other software ones, networks with routers: there were none.",
	"perftest's `-R` over IPv6, since perftest 4.5 resolves names to IPv4 only (a cell shows what it says), and `-R -c UC`, which it refuses (another does). Connections by RDMA CM over IPv6 are shown by rping and ucmatose, ours with `-R` over IPv6 at both ends by `go test ./cmd/hixl`.",
	"hixl-bench with rdma_rxe as the requester: its other end is a responder (`benchpeer`), and perftest shows that direction.",
}

// notTriedXDP is what a run on raw frames leaves out besides.
const notTriedXDP = "On raw frames: what has nothing of ours on them, cells over veth, where ours is in the guest, and those with rdma_rxe at both ends."

// Late returns the outcomes that are a pass, but not at the first attempt.
func (r *Report) Late() []Outcome {
	var late []Outcome
	for _, o := range r.Outcomes {
		if o.late && o.Status == Pass {
			late = append(late, o)
		}
	}
	return late
}

// xdp reports whether ours was on raw frames.
func (r *Report) xdp() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Carrier != "" })
}

// Write writes report.json and INTEROP.md into a folder, or of a run on raw frames
// xdp-report.json and INTEROP-XDP.md.
func (r *Report) Write(dir string) error {
	asJSON, asText := jsonFile, textFile
	if r.xdp() {
		asJSON, asText = jsonFileXDP, textFileXDP
	}
	outcomes := r.Outcomes
	if outcomes == nil {
		outcomes = []Outcome{}
	}
	b, err := json.MarshalIndent(outcomes, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, asJSON), append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, asText), r.markdown(), 0o644)
}

// markdown is the report for people.
func (r *Report) markdown() []byte {
	var b bytes.Buffer
	failed := len(r.Failed())
	title := "Interoperability with rdma_rxe"
	if r.xdp() {
		title += " on raw frames"
	}
	fmt.Fprintf(&b, "# %s\n\n", title)
	fmt.Fprintf(&b, "Written by `%s`; do not edit. %d cells ran, %d failed, %d passed at another attempt than the first.\n\n",
		r.Command, len(r.Outcomes), failed, len(r.Late()))
	fmt.Fprintf(&b, "- Date: %s\n- hixl: commit %s\n- Host: Linux %s\n", r.Date.UTC().Format(time.DateOnly), r.Commit, r.Host)
	fmt.Fprintf(&b, "- Peer: rdma_rxe of Linux %s (%s)\n", r.Image.Release, r.Image.Backend)
	fmt.Fprintf(&b, "- Its programs: %s\n", versions(r.Image.Packages))
	packets, resent := 0, 0
	for _, o := range r.Outcomes {
		packets += o.traffic.Packets
		resent += o.traffic.Resent
	}
	fmt.Fprintf(&b, "- RoCE packets on the bridge: %d, of which %d were sent again\n", packets, resent)
	fmt.Fprintf(&b, "- `hixl dump` of all of them: %v\n", r.Dump)
	fmt.Fprintf(&b, "- tshark %s of all of them: %d packets in which it sees the same fields\n", r.Tshark, r.Decoded)
	fmt.Fprintf(&b, "\nNot tried:\n\n")
	for _, n := range notTried {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	if r.xdp() {
		fmt.Fprintf(&b, "- %s\n", notTriedXDP)
	}
	for _, g := range r.groups() {
		r.table(&b, g)
	}
	return b.Bytes()
}

// groups are the groups of the outcomes, in order.
func (r *Report) groups() []string {
	var groups []string
	for _, o := range r.Outcomes {
		if !slices.Contains(groups, o.group) {
			groups = append(groups, o.group)
		}
	}
	return groups
}

// table shows a group: a line a case, a column a role.
func (r *Report) table(b *bytes.Buffer, group string) {
	type row struct {
		status map[Role]string
		detail string
	}
	var names []string
	rows := make(map[string]*row)
	for _, o := range r.Outcomes {
		if o.group != group {
			continue
		}
		w := rows[o.Case]
		if w == nil {
			w = &row{status: make(map[Role]string)}
			rows[o.Case] = w
			names = append(names, o.Case)
		}
		w.status[o.Role] = o.Status
		if o.Status != Pass || o.late {
			w.detail += fmt.Sprintf("%s: %s ", o.Role, o.Detail)
		}
		if o.traffic.Resent > 0 {
			w.detail += fmt.Sprintf("%s: %d of %d packets sent again ", o.Role, o.traffic.Resent, o.traffic.Packets)
		}
	}
	fmt.Fprintf(b, "\n## %s\n\n| Case | ours is client | ours is server | both are rdma_rxe | |\n|---|---|---|---|---|\n", group)
	for _, n := range names {
		w := rows[n]
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", n, w.status[Client], w.status[Server], w.status[None],
			strings.ReplaceAll(strings.TrimSpace(w.detail), "|", "/"))
	}
}

// versions names the packages that speak RDMA.
func versions(all map[string]string) string {
	var s []string
	for _, p := range []string{"perftest", "ibverbs-utils", "rdmacm-utils", "libibverbs1"} {
		if v := all[p]; v != "" {
			s = append(s, p+" "+v)
		}
	}
	return strings.Join(s, ", ")
}
