//go:build linux

package matrix

import (
	"fmt"
	"strings"

	"github.com/gohixl/hixl/interop/bridge"
	"github.com/gohixl/hixl/roce"
)

// Table returns all cells.
func Table() []Cell {
	return concat(labCells(), operationCells(), harmCells(), errorCells(), trainCells(), pingpongCells(), perftestCells(), cmCells(), benchCells())
}

func concat(parts ...[]Cell) []Cell {
	var all []Cell
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// harms are the faults of the bridge that traffic has to survive.
var harms = []bridge.Faults{
	{Loss: 0.01},
	{Loss: 0.05},
	{Reorder: 0.02, Duplicate: 0.01},
	{Corrupt: 0.001},
}

// verbsCell makes a cell of the verbs tool.
func verbsCell(group, words string, family int) Cell {
	name := "verbs " + words
	if family == 6 {
		name += ", IPv6"
	}
	return Cell{Name: name, Group: group, Verbs: words, Family: family}
}

// operationCells: every operation, sizes around the path MTU, 1 B to 1 MiB.
func operationCells() []Cell {
	const group = "Operations"
	var cells []Cell
	smoke := func(words ...string) {
		for _, w := range words {
			c := verbsCell(group, w, 4)
			c.Smoke = true
			cells = append(cells, c)
		}
	}
	add := func(family int, words ...string) {
		for _, w := range words {
			cells = append(cells, verbsCell(group, w, family))
		}
	}
	smoke("op=write size=5001 count=3", "op=read size=5001 count=3", "op=send size=5001 count=3", "op=cas count=4", "op=faa count=4")
	for _, op := range []string{"write", "read", "send"} {
		for _, mtu := range []int{256, 1024, 4096} {
			for _, size := range []int{1, mtu - 1, mtu, mtu + 1, 65537, 1 << 20} {
				add(4, fmt.Sprintf("op=%s mtu=%d size=%d", op, mtu, size))
			}
		}
		add(4, fmt.Sprintf("op=%s size=0", op), fmt.Sprintf("op=%s size=4097 count=100 batch=1", op))
	}
	add(4,
		"op=send-imm size=0", "op=send-imm size=13", "op=send-imm size=3001 count=10 batch=1",
		"op=write-imm size=0", "op=write-imm size=13", "op=write-imm size=3001 count=10 batch=1",
		"op=send-inv", "op=send-inv size=5000",
		"op=send srq=1 count=20 batch=1", "op=send-imm srq=1 size=2500 count=5",
		"op=send size=100 inline=1", "op=write size=100 inline=1 count=3",
		"op=read size=20000 count=20 batch=1 reads=1", "op=faa count=100 batch=1", "op=faa count=10 batch=1 reads=1",
		"op=send qp=uc size=5001 count=3", "op=send-imm qp=uc size=0", "op=write qp=uc size=5001 count=3", "op=write-imm qp=uc size=3001 count=3",
		"op=send qp=ud size=1 count=3", "op=send qp=ud size=4096 mtu=4096", "op=send-imm qp=ud size=13",
		"op=send qp=ud wrong-qkey=1",
	)
	for _, op := range []string{"write", "read", "send", "send-imm", "write-imm", "cas", "faa"} {
		add(6, fmt.Sprintf("op=%s size=5001 count=3", op))
	}
	// Once only: rdma_rxe of 6.1 crashes its kernel when a memory window that is
	// free already is invalidated.
	add(6, "op=send-inv size=5001")
	add(6, "op=write size=1048575 mtu=4096", "op=read size=1048575 mtu=256", "op=send size=0",
		"op=send qp=uc size=5001 count=3", "op=send qp=ud size=1000 count=3", "op=send-imm qp=ud size=13")
	for i := range cells {
		if strings.Contains(cells[i].Verbs, "wrong-qkey") {
			cells[i].Want.Nothing = true
		}
	}
	return cells
}

// harmed are the operations on a bridge that does harm, often is those where it
// does so to one packet in a thousand.
var harmed = []string{
	"op=write size=20001 count=100 batch=1", "op=write size=20001 count=30 batch=1 mtu=256", "op=read size=20001 count=100 batch=1",
	"op=send size=20001 count=100 batch=1", "op=write-imm size=3001 count=100", "op=send-imm size=100 count=300 batch=1",
	"op=cas count=300", "op=faa count=300 batch=1",
}

var often = []string{
	"op=write size=50001 count=200 batch=1", "op=write size=20001 count=100 batch=1 mtu=256", "op=read size=50001 count=200 batch=1",
	"op=send size=50001 count=200 batch=1", "op=write-imm size=9001 count=1000", "op=send-imm size=100 count=8000 batch=1",
	"op=cas count=4000", "op=faa count=4000 batch=1",
}

// harmCells: reliable operations over a bridge that harms packets, and unreliable
// ones, which lose messages and nothing else.
func harmCells() []Cell {
	var cells []Cell
	for _, h := range harms {
		group := "Operations with " + h.String()
		list := harmed
		if h.Corrupt > 0 {
			list = often
		}
		for i, words := range list {
			c := verbsCell(group, words, 4)
			c.Name += ", " + h.String()
			c.Faults = h
			c.Want.Resent = h.Loss > 0
			c.Smoke = h.Loss == 0.01 && i == 0
			cells = append(cells, c)
		}
		six := verbsCell(group, list[0], 6)
		six.Name += ", " + h.String()
		six.Faults = h
		cells = append(cells, six)
	}
	for _, words := range []string{"op=send-imm qp=uc size=3001 count=100", "op=send-imm qp=ud size=1000 count=100"} {
		c := verbsCell("Operations with 5 % loss", words, 4)
		c.Name += ", 5 % loss"
		c.Faults = bridge.Faults{Loss: 0.05}
		c.Want.Lost = true
		cells = append(cells, c)
	}
	return append(cells, lossOfOne()...)
}

// lossOfOne: one packet of each kind is lost, once.
func lossOfOne() []Cell {
	var cells []Cell
	for _, l := range []struct {
		words  string
		opcode roce.Opcode
	}{
		{"op=write size=5000", roce.OpWriteFirst},
		{"op=write size=5000", roce.OpWriteMiddle},
		{"op=write size=5000", roce.OpWriteLast},
		{"op=write", roce.OpAcknowledge},
		{"op=send size=5000", roce.OpSendLast},
		{"op=read size=5000", roce.OpReadRequest},
		{"op=read size=5000", roce.OpReadRespFirst},
		{"op=read size=5000", roce.OpReadRespMiddle},
		{"op=read size=5000", roce.OpReadRespLast},
		{"op=cas count=3", roce.OpCmpSwap},
		{"op=faa count=3", roce.OpFetchAdd},
		{"op=faa count=3", roce.OpAtomicAck},
	} {
		c := verbsCell("One packet lost", l.words, 4)
		c.Name += fmt.Sprintf(", the first %v lost", l.opcode)
		c.Drop = []bridge.Rule{{Match: bridge.Opcodes(l.opcode), Count: 1}}
		c.Want.Resent = true
		cells = append(cells, c)
	}
	return cells
}

// errorCells: what must fail, and how. Statuses are 1 local length, 2 local QP
// operation, 9 remote invalid request, 10 remote access, 11 remote operation, 12
// transport retries exceeded, 13 RNR retries exceeded.
func errorCells() []Cell {
	const group = "Errors"
	denied := Want{Status: 10}
	var cells []Cell
	for _, e := range []struct {
		words string
		want  Want
	}{
		{"op=write wrong-key=1", denied},
		{"op=write size=3000 wrong-key=1", denied},
		{"op=read wrong-key=1", denied},
		{"op=cas wrong-key=1", denied},
		{"op=faa wrong-key=1", denied},
		{"op=write offset=64", denied},
		{"op=write size=3000 offset=128", denied},
		{"op=write offset=-64", denied},
		{"op=read offset=64", denied},
		{"op=read size=5000 offset=4096", denied},
		{"op=faa offset=64", denied},
		{"op=write access=ra", denied},
		{"op=read access=wa", denied},
		{"op=cas access=wr", denied},
		{"op=faa access=-", denied},
		{"op=send recv=10", Want{Status: 9, PeerStatus: 1, RxeStatus: 11, RxePeerStatus: 2}},
		{"op=send size=5000 recv=3000", Want{Status: 9, PeerStatus: 1, RxeStatus: 11, RxePeerStatus: 2}},
		{"op=send recv-delay=300", Want{Resent: true}},
		{"op=send size=5000 recv-delay=300", Want{Resent: true}},
		{"op=write-imm size=3000 recv-delay=300", Want{Resent: true}},
		{"op=send srq=1 recv-delay=300 count=3", Want{Resent: true}},
		{"op=send recv-delay=1500 rnr-timer=14 rnr-retries=2", Want{Status: 13}},
		{"op=write-imm recv-delay=1500 rnr-timer=14 rnr-retries=1", Want{Status: 13}},
	} {
		c := verbsCell(group, e.words, 4)
		c.Want = e.want
		cells = append(cells, c)
	}
	silent := verbsCell(group, "op=write timeout=12 retries=3", 4)
	silent.Name += ", a silent peer"
	silent.Drop = []bridge.Rule{{Match: bridge.Opcodes(roce.OpWriteOnly)}}
	silent.Want = Want{Status: 12, Resent: true}
	return append(cells, silent, Cell{Name: "the passive end dies during writes", Group: group, Do: peerDies})
}

// trainCells: segmented sends on and off.
func trainCells() []Cell {
	var cells []Cell
	for _, mode := range []string{"on", "off"} {
		for _, family := range []int{4, 6} {
			for _, words := range []string{
				"op=write size=100000 count=8 batch=1", "op=write size=100000 count=8 batch=1 mtu=4096", "op=send size=30001 count=20 batch=1",
				"op=read size=100000 count=8 batch=1 mtu=256",
			} {
				c := verbsCell("Segmented sends (trains)", words, family)
				c.Name += ", trains " + mode
				c.Trains = mode
				veth := c
				veth.Name += ", over veth"
				veth.Veth = true
				cells = append(cells, c, veth)
			}
		}
	}
	return cells
}
