package rping

import (
	"context"
	"fmt"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// Places in the region.
const (
	recvAt  = 0 // receives, so many
	recvs   = 2
	sendAt  = recvs * advertLen
	source  = 64
	sendID  = 100
	moveID  = 101
	sqDepth = 16 // as the original
)

// end is one end of the game.
type end struct {
	cfg  *Config
	nic  *hixl.NIC
	pd   *hixl.PD
	cq   *hixl.CQ
	mr   *hixl.Region
	conn *hixl.Conn
	sink uint64
	// arrived are messages that came while something else was waited for.
	arrived []hixl.Completion
}

func newEnd(ctx context.Context, cfg *Config) (*end, error) {
	addr, err := cfg.NICAddr(ctx)
	if err != nil {
		return nil, err
	}
	n, err := cfg.OpenNIC(addr, 0)
	if err != nil {
		return nil, err
	}
	return &end{cfg: cfg, nic: n, pd: n.AllocPD(), sink: source + MaxSize + 1}, nil
}

// setUp makes what a connection needs.
func (e *end) setUp() (err error) {
	if e.cq, err = e.nic.CreateCQ(sqDepth + recvs); err != nil {
		return err
	}
	e.mr, err = e.pd.Alloc(int(e.sink)+MaxSize+1, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteWrite)
	return err
}

func (e *end) qpConfig() hixl.QPConfig {
	return hixl.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: sqDepth, MaxRecvWR: recvs, MaxReads: 1}
}

func (e *end) receives() (wrs []hixl.RecvWR) {
	for i := range uint64(recvs) {
		wrs = append(wrs, e.receive(i))
	}
	return wrs
}

func (e *end) receive(i uint64) hixl.RecvWR {
	return hixl.RecvWR{ID: i, SGE: []hixl.SGE{e.mr.SGE(recvAt+i*advertLen, advertLen)}}
}

// tell sends an advert. Nobody waits for its completion: the peer's answer says
// more.
func (e *end) tell(a advert) error {
	a.put(e.mr.Bytes()[sendAt:])
	return e.conn.PostSend(hixl.SendWR{ID: sendID, Op: hixl.OpSend, Flags: hixl.Signaled, SGE: []hixl.SGE{e.mr.SGE(sendAt, advertLen)}})
}

// hear waits for the peer's next message.
func (e *end) hear(ctx context.Context) (advert, error) {
	for len(e.arrived) == 0 {
		if _, err := e.next(ctx, sendID); err != nil {
			return advert{}, err
		}
	}
	wc := e.arrived[0]
	e.arrived = e.arrived[1:]
	if wc.ByteLen != advertLen {
		return advert{}, &tools.ExchangeError{
			Peer: e.conn.RemoteAddr().String(), Step: "a buffer's address", Problem: fmt.Sprintf("a message of %d bytes, not %d", wc.ByteLen, advertLen),
		}
	}
	a := parseAdvert(e.mr.Bytes()[recvAt+wc.WRID*advertLen:])
	return a, e.conn.PostRecv(e.receive(wc.WRID))
}

// next takes one completion, keeps it if it is a message, and reports whether it
// is that of id.
func (e *end) next(ctx context.Context, id uint64) (bool, error) {
	wc, err := tools.Next(ctx, e.cq, e.conn)
	if err != nil {
		return false, err
	}
	if wc.Opcode.IsRecv() {
		e.arrived = append(e.arrived, wc)
		return false, nil
	}
	return wc.WRID == id, nil
}

// move READs or WRITEs and waits until it is done.
func (e *end) move(ctx context.Context, op hixl.Op, far advert, n uint32) error {
	err := e.conn.PostSend(hixl.SendWR{
		ID: moveID, Op: op, Flags: hixl.Signaled, SGE: []hixl.SGE{e.mr.SGE(source, n)}, RemoteAddr: far.addr, RKey: far.rkey,
	})
	for done := false; err == nil && !done; {
		done, err = e.next(ctx, moveID)
	}
	return err
}

func (e *end) progress() uint64 { return tools.Progress(e.nic) }
