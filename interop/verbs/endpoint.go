package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
)

const qkey = 0x00780001

// endpoint is a queue pair with its memory.
type endpoint struct {
	image
	nic    *hixl.NIC
	pd     *hixl.PD
	region *hixl.Region
	window *hixl.Region // what SEND with invalidate may end
	grh    *hixl.Region
	cq     *hixl.CQ
	srq    *hixl.SRQ
	qp     *hixl.QP
	peer   end
}

func newEndpoint(nic *hixl.NIC, c *Case, active bool) (*endpoint, error) {
	e := &endpoint{nic: nic, pd: nic.AllocPD()}
	e.image = image{c: c, active: active}
	if err := e.make(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *endpoint) make() (err error) {
	access := hixl.LocalWrite
	if !e.active {
		access = e.c.access()
	}
	e.b = make([]byte, e.c.stride()*e.c.Count) // to be looked at after the NIC is gone, too
	e.fill()
	if e.region, err = e.pd.Register(e.b, access); err != nil {
		return err
	}
	if e.c.Op == "send-inv" && !e.active {
		if e.window, err = e.pd.Register(e.b, hixl.LocalWrite|hixl.RemoteWrite|hixl.RemoteInvalidate); err != nil {
			return err
		}
	}
	if e.grh, err = e.pd.Alloc(hixl.GRHLen, hixl.LocalWrite); err != nil {
		return err
	}
	if e.cq, err = e.nic.CreateCQ(2*e.c.Count + 8); err != nil {
		return err
	}
	if e.c.SRQ && !e.active {
		if e.srq, err = e.nic.CreateSRQ(e.pd, hixl.SRQConfig{MaxWR: e.c.Count}); err != nil {
			return err
		}
	}
	e.qp, err = e.nic.CreateQP(hixl.QPConfig{
		PD: e.pd, Type: services[e.c.QP], QKey: qkey, SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq, SignalAll: true,
		MaxSendWR: e.c.Count, MaxRecvWR: e.c.Count, MaxReads: e.c.Reads,
	})
	return err
}

func (e *endpoint) close() (err error) {
	if e.qp != nil {
		err = e.qp.Close()
	}
	for _, r := range []*hixl.Region{e.region, e.window, e.grh} {
		if r != nil {
			err = errors.Join(err, r.Deregister(context.Background()))
		}
	}
	if e.cq != nil {
		e.cq.Close()
	}
	return err
}

func (e *endpoint) end() *end {
	a := e.qp.Address()
	mine := &end{qpn: uint32(a.QPN), psn: uint32(a.PSN), gid: a.Addr, addr: e.region.Addr(), rkey: e.region.RKey()}
	if e.window != nil {
		mine.addr, mine.rkey = e.window.Addr(), e.window.RKey()
	}
	return mine
}

// connect makes the queue pair ready to send.
func (e *endpoint) connect() error {
	if e.c.QP == "ud" {
		return e.qp.Activate()
	}
	return e.qp.Connect(e.address(), hixl.ConnectOptions{
		MTU: e.c.MTU, Timeout: e.c.Timeout, Retries: orNone(e.c.Retries), RNRRetries: orNone(e.c.RNRRetries),
		RNRTimer: e.c.RNRTimer, MaxReads: orNone(e.c.Reads),
	})
}

func orNone(n int) int {
	if n == 0 {
		return hixl.None
	}
	return n
}

func (e *endpoint) slot(id, size int) hixl.SGE {
	return e.region.SGE(uint64(id*e.c.stride()), uint32(size))
}

func (e *endpoint) postReceives() error {
	for id := range e.c.Count {
		size := e.c.stride()
		if e.c.Recv >= 0 {
			size = e.c.Recv
		}
		wr := hixl.RecvWR{ID: uint64(id), SGE: []hixl.SGE{e.slot(id, size)}}
		if e.c.QP == "ud" {
			wr.SGE = append([]hixl.SGE{e.grh.SGE(0, hixl.GRHLen)}, wr.SGE...)
		}
		post := e.qp.PostRecv
		if e.srq != nil {
			post = e.srq.Post
		}
		if err := post(wr); err != nil {
			return err
		}
	}
	return nil
}

// completion waits for one.
func (e *endpoint) completion(ctx context.Context) (WC, error) {
	var out [1]hixl.Completion
	if _, err := e.cq.Wait(ctx, out[:]); err != nil {
		return WC{}, err
	}
	c := &out[0]
	w := WC{ID: int(c.WRID), Status: int(c.Status)}
	if w.Status != 0 {
		return w, nil
	}
	w.Op = int(c.Opcode)
	if !c.Opcode.IsRecv() {
		return w, nil
	}
	w.Len = int(c.ByteLen)
	if c.Flags&cq.WithImm != 0 {
		w.Imm = fmt.Sprintf("%x", c.Imm)
	}
	if c.Flags&cq.WithInv != 0 {
		w.Inv = judge(e.window != nil && c.InvKey == e.window.RKey())
	}
	if e.c.QP == "ud" {
		w.Len -= hixl.GRHLen
		w.GRH = judge(e.grhRight())
	}
	return w, nil
}

// grhRight reports whether the area for the network header names the sender. An
// IPv4 header lies in its last 20 bytes.
func (e *endpoint) grhRight() bool {
	b := e.grh.Bytes()
	if e.peer.gid.Is4() {
		return b[20] == 0x45 && slices.Equal(b[32:36], e.peer.gid.AsSlice())
	}
	return b[0]>>4 == 6 && slices.Equal(b[8:24], e.peer.gid.AsSlice())
}

func judge(right bool) string {
	if right {
		return "right"
	}
	return "wrong"
}
