package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// peer is the responder's side of a run: it does what the requester asks for
// over the control connection and trusts nothing of it.
type peer struct {
	addr    netip.Addr // where to open the NIC when hello does not say
	ep      *endpoint  // nil before hello
	cells   map[int]*peerCell
	qps     int // open in all cells
	tally   tally
	tcp     map[int]*tcpReceiver // by size
	shm     map[int]*shmReceiver // by size
	carrier Opener
	// trusted: the requester is the process that started this one, or the same.
	trusted bool
}

// peerCell is an open cell.
type peerCell struct {
	*lanes
	recv *receiver // nil when the operation needs none
}

// ServePeer does what the requester at the other end of in and out asks for,
// until in ends or ctx does. The requester is trusted to share memory; see
// [Listen] for others. local is the RoCE address to open when the
// requester does not name one. A run's failures are reported to the requester;
// the error is about the control connection.
func ServePeer(ctx context.Context, in io.Reader, out io.Writer, local netip.Addr) error {
	return Opener(nil).ServePeer(ctx, in, out, local)
}

func newPeer(local netip.Addr) *peer {
	return &peer{addr: local, cells: map[int]*peerCell{}, tcp: map[int]*tcpReceiver{}, shm: map[int]*shmReceiver{}}
}

func (p *peer) serve(ctx context.Context, w *wire) error {
	for {
		var req request
		if err := w.receive(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			_ = w.send(&response{Err: err.Error()}) // the last word, if anybody listens
			return fmt.Errorf("bench: peer: %w", err)
		}
		resp := p.answer(ctx, &req)
		if err := w.send(resp); err != nil {
			return fmt.Errorf("bench: peer: %w", err)
		}
	}
}

// answer does one request; what goes wrong is part of the answer.
func (p *peer) answer(ctx context.Context, req *request) *response {
	resp := &response{}
	do, ok := handlers[req.Do]
	if !ok {
		resp.Err = fmt.Sprintf("unknown request %.20q: is the peer of the same version?", req.Do)
		return resp
	}
	if p.ep == nil && req.Do != doHello {
		resp.Err = fmt.Sprintf("%q before %q", req.Do, doHello)
		return resp
	}
	if err := do(p, ctx, req, resp); err != nil {
		p.tally.failed(err)
		var m *MismatchError
		if errors.As(err, &m) {
			resp.Mismatch = m
		} else {
			resp.Err = err.Error()
		}
	}
	return resp
}

// handlers is what each request does.
var handlers = map[verb]func(*peer, context.Context, *request, *response) error{
	doHello: (*peer).hello, doOpen: (*peer).open, doPrepare: (*peer).prepare, doUsage: (*peer).usage, doCPU: (*peer).cpu,
	doFinish: (*peer).finish, doClose: (*peer).closeCell,
	doTCPOpen: (*peer).tcpOpen, doTCPTake: (*peer).tcpTake, doTCPEcho: (*peer).tcpEcho, doTCPDone: (*peer).tcpDone,
	doShmOpen: (*peer).shmOpen, doShmStart: (*peer).shmStart, doShmTake: (*peer).shmTake, doShmDone: (*peer).shmDone,
	doShmClose: (*peer).shmClose,
}

func (p *peer) hello(_ context.Context, req *request, resp *response) error {
	h := req.Hello
	switch {
	case h == nil || p.ep != nil:
		return errors.New("one hello, with its parameters, begins a session")
	case h.Version != protocolVersion:
		return fmt.Errorf("control protocol %d asked for, this peer speaks %d: run the same hixl-bench on both sides", h.Version, protocolVersion)
	case h.Region < slotAlign || h.Region > MaxRegion:
		return fmt.Errorf("region of %d bytes: allowed: 64 to 4GiB", h.Region)
	}
	if err := h.Faults.validate(); err != nil {
		return err
	}
	if err := p.stayOn(h.Cores); err != nil {
		return err
	}
	addr := h.Local
	if !addr.IsValid() {
		addr = p.addr
	}
	ep, err := openEndpoint(addr, h.Memory, h.Region, nicOptions{carrier: p.carrier, faults: h.Faults, seed: mix(h.Seed + 2), noTrains: h.NoTrains, shards: h.Shards, lowLatency: h.LowLatency})
	if err != nil {
		return err
	}
	p.ep, p.tally.from = ep, h.From
	resp.Welcome = &welcome{Addr: ep.nic.Address(), Src: memoryOf(ep.src), Dst: memoryOf(ep.dst), Memory: ep.describe()}
	return nil
}

// stayOn holds the process on the cores that its parent gives it, before the NIC
// looks how many there are.
func (p *peer) stayOn(cores []int) error {
	switch {
	case len(cores) == 0:
		return nil
	case !p.trusted:
		return errors.New("cores: refused by a peer that anybody can reach")
	}
	for _, c := range cores {
		if c < 0 || c >= maxCore {
			return fmt.Errorf("core %d: allowed: 0 to %d", c, maxCore-1)
		}
	}
	return holdOn(cores)
}

func (p *peer) open(_ context.Context, req *request, resp *response) error {
	if req.Open == nil || p.cells[req.Open.Cell.ID] != nil {
		return errors.New("a cell is opened once, with its parameters")
	}
	ce := req.Open.Cell
	if err := ce.validate(); err != nil {
		return err
	}
	if p.qps+ce.QPs > maxOpenQPs {
		return fmt.Errorf("%d queue pairs open, %d more asked for: allowed: %d", p.qps, ce.QPs, maxOpenQPs)
	}
	lay, err := ce.layout(len(p.ep.dst.Bytes()))
	if err != nil {
		return err
	}
	c, err := p.connectCell(ce, lay, req.Open.Addresses)
	if err != nil {
		return err
	}
	p.cells[ce.ID] = c
	p.qps += ce.QPs
	p.tally.cells++
	resp.Addresses = c.addresses()
	return nil
}

// connectCell makes a cell ready to be sent to.
func (p *peer) connectCell(ce cell, lay layout, remote []string) (*peerCell, error) {
	l, err := p.ep.openLanes(ce, lay)
	if err != nil {
		return nil, err
	}
	c := &peerCell{lanes: l}
	if err = l.connect(remote); err == nil && ce.Op.receives() {
		c.recv, err = startReceiver(l, p.ep.dst.Region)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return c, nil
}

func (p *peer) cell(id int) (*peerCell, error) {
	c := p.cells[id]
	if c == nil {
		return nil, fmt.Errorf("cell %d is not open", id)
	}
	return c, nil
}

func (p *peer) prepare(_ context.Context, req *request, _ *response) error {
	if req.Prepare == nil || req.Prepare.Counters < 0 || req.Prepare.Counters > len(p.ep.dst.Bytes())/slotAlign {
		return errors.New("prepare without sensible parameters")
	}
	return p.ep.prepare(req.Prepare)
}

func (p *peer) usage(_ context.Context, _ *request, resp *response) error {
	u := p.ep.usage()
	resp.Usage = &u
	return nil
}

func (p *peer) cpu(_ context.Context, _ *request, resp *response) error {
	resp.Usage = &usage{CPU: processCPU()}
	return nil
}

// finish verifies what a round brought into this side's memory.
func (p *peer) finish(ctx context.Context, req *request, _ *response) error {
	c, err := p.cell(req.Cell)
	if err != nil {
		return err
	}
	if len(req.Spans) != len(c.qps) || req.Prepare == nil {
		return fmt.Errorf("%d spans for %d queue pairs", len(req.Spans), len(c.qps))
	}
	if c.recv != nil {
		if err := c.recv.settled(ctx, req.Spans); err != nil {
			return err
		}
	}
	if err := p.verify(c, req); err != nil {
		return err
	}
	p.tally.rounds++
	return nil
}

func (p *peer) verify(c *peerCell, req *request) error {
	switch key := req.Prepare.Key; {
	case c.cell.Op == OpCAS:
		return p.verifyCounters(key, req.Spans)
	case c.cell.Op == OpFAA:
		return p.verifyCounters(key, []span{{To: total(req.Spans)}})
	case c.cell.Op.pulls():
		return nil
	default:
		if err := p.ep.dst.pull(); err != nil {
			return err
		}
		return c.lay.verify(p.ep.dst.Bytes(), key, req.Spans)
	}
}

// verifyCounters checks that counter i grew by the messages of span i.
func (p *peer) verifyCounters(key uint64, spans []span) error {
	for i, s := range spans {
		want := counterBase(key, i) + s.To - s.From
		got, err := p.ep.counter(i)
		if err != nil {
			return err
		}
		if got != want {
			return &MismatchError{Offset: i * slotAlign, Detail: fmt.Sprintf("counter %d after %d operations: want %#x, got %#x", i, s.To-s.From, want, got)}
		}
	}
	return nil
}

// total is the number of messages of all lanes.
func total(spans []span) (n uint64) {
	for _, s := range spans {
		n += s.To - s.From
	}
	return n
}

func (p *peer) closeCell(_ context.Context, req *request, _ *response) error {
	c, err := p.cell(req.Cell)
	if err != nil {
		return err
	}
	delete(p.cells, req.Cell)
	p.qps -= len(c.qps)
	return c.close()
}

// close ends a cell's receiver, then its queue pairs.
func (c *peerCell) close() error {
	var err error
	if c.recv != nil {
		err = c.recv.stop()
	}
	return errors.Join(err, c.lanes.close())
}

func (p *peer) close() {
	for _, r := range p.tcp {
		r.close()
	}
	for _, r := range p.shm {
		r.close()
	}
	for _, c := range p.cells {
		_ = c.close() // the session is over, whatever state it was in
	}
	if p.ep != nil {
		_ = p.ep.close()
	}
}
