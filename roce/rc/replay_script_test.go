package rc_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// script is the text beside a capture of vt, the lab's verbs tool: the commands
// of both ends, which packet was dropped, and what both ends printed.
type script struct {
	op       string
	options  [2]map[string]int
	ends     [2]identity
	drop     *drop
	printed  [2][]string // completions in the form of show
	memory   [2][]byte   // the first 32 bytes at the end
	complete [2]int      // how many of them are successes
}

// identity is what an end told the other about itself.
type identity struct {
	qpn  roce.QPN
	psn  roce.PSN
	rkey uint32
	addr uint64
}

// drop is the rule by which packets were lost: the first that matches, or all.
type drop struct {
	all     bool
	byPSN   bool // else by opcode
	value   uint32
	counted int
}

var (
	commandLine    = regexp.MustCompile(`^# (server|client): vt (.*?)(?:  \(exit status \d+\))?$`)
	identityLine   = regexp.MustCompile(`: \w+ qpn (\w+) psn (\w+) rkey (\w+) addr (\w+);`)
	completionLine = regexp.MustCompile(`: (.+) wr (\d+)(?: (\w+) len (\d+)(?: imm (0x\w+))?| \(status (\d+) vendor 0x0\))$`)
	memoryLine     = regexp.MustCompile(`: memory ([0-9a-f ]+) \.\.\.$`)
	dropLine       = regexp.MustCompile(`^# dropped between the VMs: (all )?@th,(64,8|136,24) (\d+)$`)
	counterLine    = regexp.MustCompile(`^# nft counter packets (\d+) `)
)

// readScript returns nil for a capture that vt did not make.
func readScript(t testing.TB, file string) *script {
	t.Helper()
	text, err := os.ReadFile(captures + file + ".txt")
	require.NoError(t, err)
	s := &script{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# c| "):
			s.said(active, line)
		case strings.HasPrefix(line, "# s| "):
			s.said(passive, line)
		case strings.HasPrefix(line, "# "):
			s.ran(t, line)
		}
	}
	if s.op == "" {
		return nil
	}
	return s
}

// ran takes a line about how the recording was made.
func (s *script) ran(t testing.TB, line string) {
	if m := commandLine.FindStringSubmatch(line); m != nil {
		end := passive
		if m[1] == "client" {
			end = active
		}
		s.command(t, end, strings.Fields(m[2]))
	}
	if m := dropLine.FindStringSubmatch(line); m != nil {
		s.drop = &drop{all: m[1] != "", byPSN: m[2] == "136,24", value: uint32(number(m[3]))}
	}
	if m := counterLine.FindStringSubmatch(line); m != nil {
		s.drop.counted = int(number(m[1]))
	}
}

// command takes vt's arguments; the defaults are vt's.
func (s *script) command(t testing.TB, end side, args []string) {
	o := map[string]int{
		"m": 1024, "s": 64, "n": 1, "P": 0x2000, "R": -1, "F": 15, "t": 14, "r": 7, "N": 7, "M": 12, "S": -1,
		"b": 0, "B": 0,
	}
	if end == active {
		o["P"] = 0x1000
	}
	for i := 0; i < len(args); i++ {
		name, found := strings.CutPrefix(args[i], "-")
		switch {
		case !found:
			s.op = args[i]
		case name == "l":
		case name == "b" || name == "B":
			o[name] = 1
		case name == "c" || name == "g":
			i++
		default:
			require.Contains(t, o, name, "vt option")
			i++
			o[name] = int(number(args[i]))
		}
	}
	s.options[end] = o
}

// said takes a line that an end printed.
func (s *script) said(end side, line string) {
	if m := identityLine.FindStringSubmatch(line); m != nil {
		s.ends[end] = identity{
			qpn: roce.QPN(number(m[1])), psn: roce.PSN(number(m[2])), rkey: uint32(number(m[3])), addr: number(m[4]),
		}
	}
	if m := memoryLine.FindStringSubmatch(line); m != nil {
		s.memory[end], _ = hex.DecodeString(strings.ReplaceAll(m[1], " ", ""))
	}
	m := completionLine.FindStringSubmatch(line)
	switch {
	case m == nil || m[2] == "999": // binding the memory window, a local operation
	case m[6] != "":
		s.printed[end] = append(s.printed[end], fmt.Sprintf("wr %s status %s", m[2], m[6]))
	default:
		c := fmt.Sprintf("wr %s %s len %s", m[2], m[3], m[4])
		if m[5] != "" && end == passive { // rxe sets the flag on send completions too
			c += " imm " + m[5]
		}
		s.printed[end] = append(s.printed[end], c)
		s.complete[end]++
	}
}

// show prints a completion as vt does, errors by number.
func show(c *cq.Completion) string {
	if c.Status != cq.StatusSuccess {
		return fmt.Sprintf("wr %d status %d", c.WRID, c.Status)
	}
	name := map[cq.Opcode]string{
		cq.OpSend: "SEND", cq.OpWrite: "RDMA_WRITE", cq.OpRead: "RDMA_READ", cq.OpCompSwap: "COMP_SWAP",
		cq.OpFetchAdd: "FETCH_ADD", cq.OpRecv: "RECV", cq.OpRecvWriteImm: "RECV_RDMA_WITH_IMM",
	}[c.Opcode]
	s := fmt.Sprintf("wr %d %s len %d", c.WRID, name, c.ByteLen)
	if c.Flags&cq.WithImm != 0 {
		s += fmt.Sprintf(" imm 0x%08x", c.Imm)
	}
	return s
}

// mark sets which packets were lost.
func (d *drop) mark(t testing.TB, list []packet) {
	if d == nil {
		return
	}
	count := 0
	for i := range list {
		value := uint32(list[i].p.Opcode)
		if d.byPSN {
			value = uint32(list[i].p.PSN)
		}
		if value == d.value && (d.all || count == 0) {
			list[i].lost = true
			count++
		}
	}
	require.Equal(t, d.counted, count, "packets dropped between the ends")
}

// number reads a number as C does; the patterns allow no other text.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return n
}
