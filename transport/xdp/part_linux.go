package xdp

import (
	"sync/atomic"

	"github.com/gohixl/hixl/transport"
)

// part reads some of the queues, and one of them the kernel's socket as well.
type part struct {
	c      *Conn
	queues []*queue
	kernel bool
	turn   atomic.Uint32 // of the queue that is read first
	wait   waiters
	gaps   gaps
}

func newPart(c *Conn, queues []*queue, kernel bool) *part {
	p := &part{c: c, queues: queues, kernel: kernel}
	p.gaps.start(c.cfg.Spin)
	return p
}

// Shards returns a part for each queue where their number is a power of two, and
// one for all elsewhere. On which queue a packet comes is the device's choice, and
// has nothing to do with its queue pair.
func (c *Conn) Shards() []transport.Reader {
	n := len(c.queues)
	if n&(n-1) != 0 {
		return []transport.Reader{c.all}
	}
	parts := make([]transport.Reader, n)
	for i := range parts {
		parts[i] = newPart(c, c.queues[i:i+1], i == 0)
	}
	return parts
}

// ReadBatch fills slots with what has come.
func (p *part) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, err := p.read(b)
		if n > 0 || err != nil || !wait {
			return n, err
		}
		if err := p.WaitRead(); err != nil {
			return 0, err
		}
	}
}

func (p *part) read(b []transport.Rx) (n int, err error) {
	c := p.c
	c.life.RLock()
	defer c.life.RUnlock()
	c.giveBack(b)
	if err := c.closedError(); err != nil {
		return 0, err
	}
	first := 0
	if len(p.queues) > 1 {
		first = int(p.turn.Add(1))
	}
	for i := range p.queues {
		if n += p.queues[(first+i)%len(p.queues)].read(b[n:]); n == len(b) {
			return n, nil
		}
	}
	if n == 0 && c.cfg.BusyPoll > 0 {
		for _, q := range p.queues {
			q.rings.poll()
			n += q.read(b[n:])
		}
	}
	if p.kernel && n < len(b) && c.kernel.wanted() {
		k, err := c.kernel.read(b[n:])
		n += k
		if n == 0 {
			return 0, err
		}
	}
	return n, nil
}

// Release takes lent memory back.
func (p *part) Release(b []transport.Rx) { p.c.Release(b) }

// Stats returns the counters of what the part received, zero after Close.
func (p *part) Stats() transport.Stats {
	p.c.life.RLock()
	defer p.c.life.RUnlock()
	if p.c.stats.Load() != nil {
		return transport.Stats{}
	}
	return p.received()
}

func (p *part) received() (s transport.Stats) {
	for _, q := range p.queues {
		n, k := &q.counts, q.rings.statistics()
		s.RxPackets += n.rxPackets.Load()
		s.RxBytes += n.rxBytes.Load()
		s.RxTrains += n.rxTrains.Load()
		s.RxOverflow += k.Rx_dropped + k.Rx_ring_full
	}
	if p.kernel {
		o := p.c.kernel.conn.Stats()
		s.RxPackets += o.RxPackets
		s.RxBytes += o.RxBytes
		s.RxOverflow += o.RxOverflow
		s.RxTruncated += o.RxTruncated
	}
	return s
}
