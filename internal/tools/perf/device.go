package perf

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// device is the NIC with what the test needs of it.
type device struct {
	nic  *hixl.NIC
	pd   *hixl.PD
	mr   *hixl.Region
	cq   *hixl.CQ
	qps  []*hixl.QP
	to   []hixl.Destination // of datagrams, one for each queue pair
	lay  layout
	seed uint32
}

// wcBatch is how many completions are taken at a time.
const wcBatch = 64

func openDevice(c *Config, fallback netip.Addr) (*device, error) {
	n, err := c.OpenNIC(fallback, c.MTU)
	if err != nil {
		return nil, err
	}
	return &device{nic: n, pd: n.AllocPD()}, nil
}

// prepare makes the region, filled for the test, and the completion queue.
func (d *device) prepare(c *Config, t terms, largest int) (err error) {
	var b [2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("reading randomness: %w", err)
	}
	d.seed = mark | uint32(binary.BigEndian.Uint16(b[:]))
	d.lay = newLayout(c, t, largest)
	if d.cq, err = d.nic.CreateCQ(c.QPs*(c.TxDepth+c.RxDepth) + wcBatch); err != nil {
		return err
	}
	d.mr, err = d.pd.Alloc(d.lay.size(), hixl.LocalWrite|hixl.RemoteWrite|hixl.RemoteRead|hixl.RemoteAtomic)
	if err != nil {
		return fmt.Errorf("%d queue pairs with %d bytes each: %w", c.QPs, 2*d.lay.area, err)
	}
	for i := range c.QPs {
		d.fill(c.Test, i)
	}
	return nil
}

// local and shared are the areas of a queue pair.
func (d *device) local(qp int) []byte {
	return d.mr.Bytes()[d.lay.local(qp):][:d.lay.area]
}

func (d *device) shared(qp int) []byte {
	return d.mr.Bytes()[d.lay.shared(qp):][:d.lay.area]
}

// fill gives an area what the test expects there: data at its source, where it
// can be recognised, and something else where it will arrive.
func (d *device) fill(t Test, qp int) {
	if t.pulls() {
		fill(d.local(qp), canary)
		pattern(d.shared(qp), d.seed, qp)
		return
	}
	pattern(d.local(qp), d.seed, qp)
	if t == (Test{Write, Latency}) {
		fill(d.shared(qp), 0) // the counter in the last byte starts at 1
		return
	}
	fill(d.shared(qp), canary)
}

// qpConfig is how a queue pair of the test is made.
func (d *device) qpConfig(c *Config) hixl.QPConfig {
	q := hixl.QPConfig{
		PD: d.pd, Type: c.Connection, QKey: tools.DefaultQKey, SendCQ: d.cq, RecvCQ: d.cq,
		MaxSendWR: c.TxDepth, MaxRecvWR: c.RxDepth, MaxReads: 1,
	}
	if c.Test.pulls() {
		q.MaxReads = c.Outs
	}
	return q
}

// createQPs makes the queue pairs of an exchange over TCP.
func (d *device) createQPs(c *Config) error {
	for range c.QPs {
		q, err := d.nic.CreateQP(d.qpConfig(c))
		if err != nil {
			return err
		}
		d.qps = append(d.qps, q)
	}
	return nil
}

// dests returns what the peer is told.
func (d *device) dests(c *Config) []dest {
	out := make([]dest, len(d.qps))
	for i, q := range d.qps {
		a := q.Address()
		out[i] = dest{
			outs: 1, qpn: uint32(a.QPN), psn: uint32(a.PSN), addr: d.mr.Addr() + uint64(d.lay.shared(i)),
			gid: tools.GID(a.Addr), srqn: d.seed,
		}
		if c.Test.pulls() {
			out[i].outs = c.Outs
		}
		if c.Test.Verb != Send {
			out[i].rkey = d.mr.RKey()
		}
	}
	return out
}

// connect joins the queue pairs with the peer's.
func (d *device) connect(c *Config, mtu int, theirs []dest) error {
	for i, q := range d.qps {
		t := &theirs[i]
		addr, err := tools.AddrOfGID(t.gid, d.nic.Address())
		if err != nil {
			return err
		}
		if c.Connection == hixl.UD {
			d.to = append(d.to, hixl.Destination{
				Addr: addr, QPN: hixl.QPN(t.qpn), QKey: tools.DefaultQKey, TrafficClass: uint8(c.TrafficClass),
			})
			if err := q.Activate(); err != nil {
				return err
			}
			continue
		}
		outs := min(max(t.outs, 1), MaxOuts)
		err = q.Connect(
			hixl.Address{Addr: addr, QPN: hixl.QPN(t.qpn), PSN: hixl.PSN(t.psn), MTU: mtu, MaxReads: outs},
			hixl.ConnectOptions{MTU: mtu, Timeout: c.Timeout, MaxReads: outs, TrafficClass: uint8(c.TrafficClass)},
		)
		if err != nil {
			return fmt.Errorf("connecting to %v qp %#x: %w", addr, t.qpn, err)
		}
	}
	return nil
}

// progress is what watches look at: packets of the peer that were taken.
func (d *device) progress() uint64 { return tools.Progress(d.nic) }

// retransmitted sums the packets sent again.
func (d *device) retransmitted() (n uint64) {
	for _, q := range d.qps {
		n += q.Stats().Retransmitted
	}
	return n
}

func (d *device) close(err error) error { return errors.Join(err, d.nic.Close()) }

// fillSize prepares the areas for the messages of one size. Every send is the start
// of the pattern, wherever it lies, since receives need not be at the same place;
// the writes of a latency test have lost a byte to the count.
func (d *device) fillSize(e *engine) {
	if e.cfg.Test.pulls() {
		return
	}
	for qp := range e.flows {
		for n := range e.walk.count {
			if e.cfg.Test.Verb == Send || n == 0 {
				pattern(d.local(qp)[e.walk.at(uint64(n)):][:e.size], d.seed, qp)
			}
		}
		if e.cfg.Test.Verb == Send {
			fill(d.shared(qp), canary)
		}
	}
}
