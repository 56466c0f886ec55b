package verbs

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/gohixl/hixl"
)

// Act does a case with the passive end at host, as the active one.
func Act(ctx context.Context, nic *hixl.NIC, host string, c Case) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, Port))
	if err != nil {
		return nil, fmt.Errorf("verbs: %w", err)
	}
	l := newLines(ctx, conn)
	defer l.close()
	if err := l.tell("case %s", c); err != nil {
		return nil, err
	}
	e, err := newEndpoint(nic, &c, true)
	if err != nil {
		return nil, err
	}
	r, err := e.act(ctx, l)
	if closing := e.close(); err == nil {
		err = closing
	}
	return r, err
}

func (e *endpoint) act(ctx context.Context, l *lines) (*Result, error) {
	if err := l.exchange(e, false); err != nil {
		return nil, err
	}
	if e.c.PSN >= 0 {
		return nil, fmt.Errorf("%w: a NIC of ours chooses its PSN", ErrCase)
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	if err := l.expect("ready"); err != nil {
		return nil, err
	}
	r := new(Result)
	if err := e.operate(ctx, r); err != nil {
		return r, err
	}
	if err := l.tell("done"); err != nil {
		return r, err
	}
	r.Slots = e.slots()
	for {
		line, err := l.get()
		if err != nil || line == "bye" {
			return r, err
		}
		if err := r.add(line, true); err != nil {
			return r, err
		}
	}
}

// operate does the operations, until one fails.
func (e *endpoint) operate(ctx context.Context, r *Result) error {
	step := 1
	if e.c.Batch {
		step = e.c.Count
	}
	for id := 0; id < e.c.Count; id += step {
		wrs := make([]hixl.SendWR, 0, step)
		for i := id; i < id+step; i++ {
			wrs = append(wrs, e.request(i))
		}
		if err := e.qp.PostSend(wrs...); err != nil {
			return err
		}
		failed := false
		for range wrs {
			w, err := e.completion(ctx)
			if err != nil {
				return err
			}
			r.WCs = append(r.WCs, w)
			failed = failed || w.Status != 0
		}
		if failed {
			break
		}
	}
	return nil
}

// request is message id.
func (e *endpoint) request(id int) hixl.SendWR {
	rkey, word := e.peer.rkey, e.c.Size
	if e.c.WrongKey {
		rkey ^= 0x5500
	}
	if e.c.atomic() {
		word = 8
	}
	wr := hixl.SendWR{ID: uint64(id), Op: operations[e.c.Op]}
	if word > 0 {
		wr.SGE = []hixl.SGE{e.slot(id, word)}
	}
	if e.c.Inline {
		wr.Flags |= hixl.Inline
	}
	wr.Imm, _ = e.c.Immediate(id)
	switch {
	case e.c.Op == "send-inv":
		wr.InvKey = rkey
	case e.c.atomic():
		wr.RemoteAddr, wr.RKey = e.peer.addr+uint64(e.c.Offset), rkey
		wr.Compare, wr.SwapAdd = e.operands(id)
	case !strings.HasPrefix(e.c.Op, "send"):
		wr.RemoteAddr, wr.RKey = e.peer.addr+uint64(id*e.c.stride()+e.c.Offset), rkey
	}
	if e.c.QP == "ud" {
		wr.To = hixl.Destination{Addr: e.peer.gid, QPN: hixl.QPN(e.peer.qpn), QKey: qkey}
		if e.c.WrongQKey {
			wr.To.QKey ^= 1
		}
	}
	return wr
}

func (e *endpoint) operands(id int) (compare, swapAdd uint64) {
	if e.c.Op == "faa" {
		return 0, 1
	}
	compare = e.c.after(id)
	if id%2 == 1 {
		compare = ^compare
	}
	return compare, e.c.after(id + 1)
}
