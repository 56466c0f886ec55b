package nic_test

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// endModel is one side of a connection as a requester, and what its peer's
// operations will complete here.
type endModel struct {
	*nictest.End
	w    *world
	mem  *hostMem
	peer *endModel

	left, posted int
	sends        []cq.Completion // expected, in order
	recvs        []cq.Completion // expected, in order
	unposted     []qp.RecvWR     // receives that are posted late, to make RNR
	invalid      []*mr.Region    // must be unusable once its SEND has completed
}

func (w *world) newEnd(x *nictest.End, host int) *endModel {
	e := &endModel{End: x, w: w, mem: w.hosts[host], left: 10 + w.rng.IntN(25)}
	w.ends = append(w.ends, e)
	return e
}

func (e *endModel) finished() bool {
	return e.left == 0 && len(e.sends) == 0 && len(e.recvs) == 0 && len(e.unposted) == 0
}

// work posts some operations and some of the receives that wait for it.
func (e *endModel) work() {
	rng := e.w.rng
	for len(e.unposted) > 0 && rng.IntN(5) == 0 {
		e.Receive(e.unposted[0])
		e.unposted = e.unposted[1:]
	}
	var list []qp.SendWR
	for e.left > 0 && rng.IntN(4) > 0 {
		e.left--
		list = append(list, e.operation())
	}
	if len(list) > 0 {
		e.Post(list...)
	}
}

// size is mostly small, sometimes several packets, never round.
func (e *endModel) size() int {
	switch rng := e.w.rng; rng.IntN(6) {
	case 0:
		return 0
	case 1, 2:
		return 1 + rng.IntN(64)
	default:
		return rng.IntN(6000)
	}
}

// operation makes a random work request and notes what it must lead to.
func (e *endModel) operation() qp.SendWR {
	rng := e.w.rng
	op := wr.Op(rng.IntN(int(wr.OpAtomicWrite) + 1))
	req := qp.SendWR{ID: uint64(e.posted), Op: op, RKey: e.peer.mem.region.RKey(), Imm: rng.Uint32()}
	e.posted++
	if e.left == 0 || rng.IntN(3) > 0 {
		req.Flags |= wr.Signaled // the last one, so that its completion ends the run
	}
	if rng.IntN(6) == 0 {
		req.Flags |= wr.Fence
	}
	if rng.IntN(6) == 0 {
		req.Flags |= wr.Solicited
	}
	n := e.size()
	switch {
	case op.Atomic():
		n = 8
		e.atomic(&req)
	case op == wr.OpRead:
		e.read(&req, n)
	default:
		e.message(&req, n)
	}
	if req.Flags&wr.Signaled != 0 {
		e.sends = append(e.sends, cq.Completion{WRID: req.ID, Opcode: op.Completion(), ByteLen: uint32(n)})
	}
	return req
}

// source gives a message's bytes: a place in memory, cut in two now and then, or
// inline.
func (e *endModel) source(req *qp.SendWR, n int) []byte {
	off := e.mem.take(n)
	data := e.mem.want[off : off+n]
	switch r := e.mem.region; {
	case n <= qp.MaxInline && n > 0 && e.w.rng.IntN(3) == 0:
		req.Inline = append([]byte{}, data...)
	case n > 1 && e.w.rng.IntN(3) == 0:
		k := 1 + e.w.rng.IntN(n-1)
		req.SGE = []mr.SGE{r.SGE(uint64(off), uint32(k)), r.SGE(uint64(off+k), uint32(n-k))}
	case n > 0:
		req.SGE = []mr.SGE{r.SGE(uint64(off), uint32(n))}
	}
	return data
}

func (e *endModel) message(req *qp.SendWR, n int) {
	data := e.source(req, n)
	if req.Op == wr.OpWrite || req.Op == wr.OpWriteImm {
		to := e.peer.mem.take(n)
		req.RemoteAddr = e.peer.mem.region.Addr() + uint64(to)
		copy(e.peer.mem.want[to:], data)
		if req.Op == wr.OpWriteImm {
			e.peer.expect(req, n, nil)
		}
		return
	}
	if req.Op == wr.OpSendInv {
		spare, err := e.peer.PD.Register(e.peer.mem.region.Memory(), mr.Options{Access: nictest.AllAccess})
		require.NoError(e.w.t, err)
		e.peer.invalid = append(e.peer.invalid, spare)
		req.InvKey = spare.RKey()
	}
	e.peer.expect(req, n, data)
}

// expect prepares a receive for a message of n bytes and notes its completion.
func (e *endModel) expect(req *qp.SendWR, n int, data []byte) {
	c := cq.Completion{WRID: uint64(len(e.recvs) + 1000*e.posted), Opcode: cq.OpRecv, ByteLen: uint32(n)}
	recv := qp.RecvWR{ID: c.WRID}
	if data != nil || req.Op != wr.OpWriteImm {
		room := n + e.w.rng.IntN(20)
		off := e.mem.take(room)
		copy(e.mem.want[off:], data)
		if room > 0 {
			recv.SGE = []mr.SGE{e.mem.region.SGE(uint64(off), uint32(room))}
		}
	}
	switch req.Op {
	case wr.OpWriteImm:
		c.Opcode = cq.OpRecvWriteImm
		fallthrough
	case wr.OpSendImm:
		c.Flags, c.Imm = cq.WithImm, req.Imm
	case wr.OpSendInv:
		c.Flags, c.InvKey = cq.WithInv, req.InvKey
	default: // plain SEND
	}
	if req.Flags&wr.Solicited != 0 {
		c.Flags |= cq.Solicited
	}
	e.recvs = append(e.recvs, c)
	e.unposted = append(e.unposted, recv)
}

func (e *endModel) read(req *qp.SendWR, n int) {
	from, to := e.peer.mem.take(n), e.mem.take(n)
	req.RemoteAddr = e.peer.mem.region.Addr() + uint64(from)
	copy(e.mem.want[to:to+n], e.peer.mem.want[from:])
	if n > 0 {
		req.SGE = []mr.SGE{e.mem.region.SGE(uint64(to), uint32(n))}
	}
}

func (e *endModel) atomic(req *qp.SendWR) {
	remote := e.peer.mem
	if req.Op == wr.OpAtomicWrite {
		at := remote.take(8)
		req.Inline = binary.NativeEndian.AppendUint64(nil, e.w.rng.Uint64())
		copy(remote.want[at:], req.Inline)
		req.RemoteAddr = remote.region.Addr() + uint64(at)
		return
	}
	to := e.mem.take(8)
	req.SGE = []mr.SGE{e.mem.region.SGE(uint64(to), 8)}
	if req.Op == wr.OpFetchAdd {
		req.SwapAdd, req.RemoteAddr = 1, remote.region.Addr()
		remote.sum++
		remote.adds = append(remote.adds, &faa{e.mem, to})
		return
	}
	at := remote.take(8)
	old := binary.NativeEndian.Uint64(remote.want[at:])
	req.RemoteAddr, req.Compare, req.SwapAdd = remote.region.Addr()+uint64(at), old, e.w.rng.Uint64()
	if e.w.rng.IntN(2) == 0 {
		req.Compare++ // does not match
	} else {
		binary.NativeEndian.PutUint64(remote.want[at:], req.SwapAdd)
	}
	binary.NativeEndian.PutUint64(e.mem.want[to:], old)
}

// collect takes completions: each must be the next expected one.
func (e *endModel) collect() {
	t := e.w.t
	for _, c := range e.Take(e.Send) {
		require.NoError(t, c.Err())
		require.NotEmpty(t, e.sends, "completion %d was not asked for", c.WRID)
		want := e.sends[0]
		e.sends = e.sends[1:]
		require.Equal(t, [3]uint64{want.WRID, uint64(want.Opcode), uint64(want.ByteLen)}, [3]uint64{c.WRID, uint64(c.Opcode), uint64(c.ByteLen)})
	}
	for _, c := range e.Take(e.Recv) {
		require.NoError(t, c.Err())
		require.NotEmpty(t, e.recvs, "receive %d completes twice", c.WRID)
		want := e.recvs[0]
		e.recvs = e.recvs[1:]
		require.Equal(t, want, cq.Completion{WRID: c.WRID, Opcode: c.Opcode, ByteLen: c.ByteLen, Flags: c.Flags, Imm: c.Imm, InvKey: c.InvKey})
		if c.Flags&cq.WithInv != 0 {
			spare := e.invalid[0]
			e.invalid = e.invalid[1:]
			_, err := e.PD.Remote(spare.RKey(), spare.Addr(), 1, mr.RemoteRead)
			require.ErrorIs(t, err, mr.ErrRevoked, "unusable before its completion is seen")
			require.NoError(t, spare.Deregister(t.Context()))
		}
	}
}
