//go:build linux

package matrix

import (
	"strings"
)

// benchCells: hixl-bench moves bytes to and from a region of rdma_rxe's, and both
// ends verify each. The other end is the guests' benchpeer.
func benchCells() []Cell {
	const all = "write,read,send,write-imm,cas,faa"
	cells := []Cell{
		benchCell(4, "--op "+all+" --size 64,4097"),
		benchCell(4, "--op "+all+" --size 64KiB,1MiB"),
		benchCell(4, "--op write,read --size 65537 --qps 4 --depth 8"),
		benchCell(4, "--op write,read,send --size 65537 --mtu 1024"),
		benchCell(6, "--op "+all+" --size 4097"),
	}
	for _, h := range harms {
		options := "--op write,read,faa --size 20001 --depth 16"
		if h.Corrupt > 0 {
			options = strings.ReplaceAll(options, "20001", "200001")
		}
		cells = append(cells, withHarm(benchCell(4, options), h))
	}
	return cells
}

func benchCell(family int, options string) Cell {
	peer := "{peer}"
	if family == 6 {
		peer = "[{peer}]:" + toolPort
	}
	c := toolCell("hixl-bench", "hixl-bench "+options, family, Tool{
		Program: benchBinary, Ready: "tcp", Says: `Every byte that arrived was verified\.`,
		Theirs: Ends{Server: "benchpeer"},
		Ours:   Ends{Client: "--peer " + peer + " --local {self} --baseline none --region 4MiB --rounds 1 --duration 100ms --seed 1 " + options},
	})
	c.Roles = []Role{Client}
	return c
}
