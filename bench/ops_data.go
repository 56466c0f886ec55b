package bench

import "github.com/gohixl/hixl"

// dataOp is an operation that moves bytes; what it moved is verified in memory
// when the round is over.
type dataOp struct {
	local           *hixl.Region
	remote          remoteMemory
	pull, immediate bool
}

// build names the local and the remote end of a message: READ takes from the
// peer's source into our destination, the others the reverse.
func (o *dataOp) build(wr *hixl.SendWR, _ int, n uint64, dst, src int) {
	if o.pull {
		dst, src = src, dst
	}
	wr.SGE[0].Addr = o.local.Addr() + uint64(src)
	wr.RemoteAddr = o.remote.Addr + uint64(dst)
	if o.immediate {
		wr.Imm = uint32(n)
	}
}

func (o *dataOp) completed(int, uint64, uint64) error { return nil }
func (o *dataOp) begin(uint64, []uint64)              {}
func (o *dataOp) end() error                          { return nil }

// dataOperation makes a data operation and the work request that it varies.
func (e *endpoint) dataOperation(ce cell, peer *welcome) (operation, hixl.SendWR) {
	o := &dataOp{local: e.src.Region, remote: peer.Dst, pull: ce.Op.pulls(), immediate: ce.Op == OpWriteImm}
	if o.pull {
		o.local, o.remote = e.dst.Region, peer.Src
	}
	wr := hixl.SendWR{
		Op: sendOps[ce.Op], RKey: o.remote.RKey,
		SGE: []hixl.SGE{{Length: uint32(ce.Size), LKey: o.local.LKey()}},
	}
	return o, wr
}

// sendOps are the work requests' operations.
var sendOps = [opCount]hixl.Op{
	OpWrite: hixl.OpWrite, OpRead: hixl.OpRead, OpSend: hixl.OpSend,
	OpWriteImm: hixl.OpWriteImm, OpCAS: hixl.OpCmpSwap, OpFAA: hixl.OpFetchAdd,
}
