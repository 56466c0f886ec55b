package pingpong

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// Work request numbers, the bits of player.pending.
const (
	recvID = 1
	sendID = 2
)

// player is one end of the game.
type player struct {
	cfg *Config
	nic *hixl.NIC
	qp  *hixl.QP
	cq  *hixl.CQ
	mr  *hixl.Region // the ball; with a datagram the network header before it
	grh uint32
	to  hixl.Destination

	want []byte // what a message should be

	posted, sent, received int
	pending                uint64
}

func newPlayer(cfg *Config, fallback netip.Addr) (_ *player, err error) {
	p := &player{cfg: cfg}
	if p.nic, err = cfg.OpenNIC(fallback, 0); err != nil {
		return nil, err
	}
	if err := p.setUp(); err != nil {
		return nil, errors.Join(err, p.nic.Close())
	}
	return p, nil
}

func (p *player) setUp() (err error) {
	if p.cfg.Service == hixl.UD {
		p.grh = hixl.GRHLen
		if p.cfg.Size > p.nic.MTU() {
			return &tools.OptionError{Option: "-s", Value: p.cfg.Size, Allowed: fmt.Sprintf("a datagram holds at most the path MTU, %d bytes here", p.nic.MTU())}
		}
	} else if p.cfg.MTU > p.nic.MTU() {
		return &tools.OptionError{Option: "-m", Value: p.cfg.MTU, Allowed: fmt.Sprintf("the link takes at most %d", p.nic.MTU())}
	}
	pd := p.nic.AllocPD()
	if p.cq, err = p.nic.CreateCQ(p.cfg.RxDepth + 1); err != nil {
		return err
	}
	if p.mr, err = pd.Alloc(p.cfg.Size+int(p.grh), hixl.LocalWrite); err != nil {
		return err
	}
	p.fillBall()
	p.qp, err = p.nic.CreateQP(hixl.QPConfig{
		PD: pd, Type: p.cfg.Service, QKey: tools.DefaultQKey, SendCQ: p.cq, RecvCQ: p.cq,
		MaxSendWR: 1, MaxRecvWR: p.cfg.RxDepth, NoRemote: true, MaxReads: 1, MaxInline: hixl.None,
	})
	if err != nil {
		return err
	}
	return p.receive()
}

func (p *player) ball() []byte { return p.mr.Bytes()[p.grh:] }

// What the originals' balls are filled with, and the distance of the bytes that
// -c sets to 0.
const (
	filling = 0x7b
	page    = 4096
)

// fillBall prepares what this side plays, and with Check what it wants to see:
// the server of an original gives back what it got.
func (p *player) fillBall() {
	p.want = bytes.Repeat([]byte{filling}, p.cfg.Size)
	copy(p.ball(), p.want)
	for i := 0; i < p.cfg.Size; i += page {
		p.want[i] = 0
	}
	if p.cfg.Check && p.cfg.Client() {
		copy(p.ball(), p.want)
	}
}

func (p *player) dest() dest {
	a := p.qp.Address()
	return dest{qpn: a.QPN, psn: a.PSN, gid: tools.GID(a.Addr)}
}

func (p *player) connect(theirs dest) error {
	addr, err := tools.AddrOfGID(theirs.gid, p.nic.Address())
	if err != nil {
		return &tools.ExchangeError{Peer: p.cfg.Host, Step: "its address", Problem: "of no use", Err: err}
	}
	if p.cfg.Service == hixl.UD {
		p.to = hixl.Destination{Addr: addr, QPN: theirs.qpn, QKey: tools.DefaultQKey}
		return p.qp.Activate()
	}
	return p.qp.Connect(
		hixl.Address{Addr: addr, QPN: theirs.qpn, PSN: theirs.psn, MTU: p.cfg.MTU, MaxReads: 1},
		hixl.ConnectOptions{MTU: p.cfg.MTU, MaxReads: 1},
	)
}

// receive posts receives up to the depth. They share the ball, as in the
// originals: one message is under way at a time.
func (p *player) receive() error {
	wrs := make([]hixl.RecvWR, p.cfg.RxDepth-p.posted)
	sge := []hixl.SGE{p.mr.SGE(0, uint32(p.cfg.Size)+p.grh)}
	for i := range wrs {
		wrs[i] = hixl.RecvWR{ID: recvID, SGE: sge}
	}
	p.posted = p.cfg.RxDepth
	return p.qp.PostRecv(wrs...)
}

func (p *player) send() error {
	p.pending = recvID | sendID
	return p.qp.PostSend(hixl.SendWR{
		ID: sendID, Op: hixl.OpSend, Flags: hixl.Signaled, To: p.to, SGE: []hixl.SGE{p.mr.SGE(uint64(p.grh), uint32(p.cfg.Size))},
	})
}

// loop plays until both directions have had all their messages.
func (p *player) loop(ctx context.Context) error {
	p.pending = recvID
	if p.cfg.Client() {
		if err := p.send(); err != nil {
			return err
		}
	}
	var wcs [2]hixl.Completion
	for p.received < p.cfg.Iters || p.sent < p.cfg.Iters {
		n, err := p.cq.Wait(ctx, wcs[:])
		if err != nil {
			return fmt.Errorf("%d of %d messages sent, %d received: %w", p.sent, p.cfg.Iters, p.received, tools.Cause(ctx, err))
		}
		for i := range wcs[:n] {
			if err := p.completed(&wcs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) completed(wc *hixl.Completion) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.WRID == sendID {
		p.sent++
	} else if err := p.arrived(wc); err != nil {
		return err
	}
	p.pending &^= wc.WRID
	if p.pending == 0 && p.sent < p.cfg.Iters {
		return p.send()
	}
	return nil
}

func (p *player) arrived(wc *hixl.Completion) error {
	p.received++
	if got := int(wc.ByteLen) - int(p.grh); got != p.cfg.Size {
		return &tools.DataError{
			Where: fmt.Sprintf("message %d", p.received), Problem: fmt.Sprintf("%d bytes long, not %d: give both ends the same -s", got, p.cfg.Size),
		}
	}
	if p.cfg.Check && !bytes.Equal(p.ball(), p.want) {
		return tools.CompareBytes(fmt.Sprintf("message %d (do both ends have -c?)", p.received), p.ball(), p.want)
	}
	if p.posted--; p.posted <= 1 {
		return p.receive()
	}
	return nil
}
