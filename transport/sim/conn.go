package sim

import (
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/transport"
)

// Conn is a host of a simulated network.
type Conn struct {
	net  *Network   // set once
	addr netip.Addr // set once

	// All below is guarded by net.mu.
	readable sync.Cond
	queue    []*frame // ring: head is the oldest
	head     int
	bytes    int // of UDP payload in queue
	closed   bool
	stats    transport.Stats
}

// LocalAddr returns the address given to Host.
func (c *Conn) LocalAddr() netip.Addr { return c.addr }

// SourcePort returns want, whatever it is.
func (c *Conn) SourcePort(want uint16) uint16 { return want }

// Caps tells that headers are visible and under control, unless the network
// hides them.
func (c *Conn) Caps() transport.Caps {
	cfg := &c.net.cfg
	caps := transport.Caps{
		HeadersVisible: !cfg.HideHeaders,
		FullIPControl:  !cfg.HideHeaders,
		KnownID:        true,
		ECN:            true,
		MTU:            cfg.MTU,
		RxBuf:          cfg.MTU,
	}
	if cfg.Trains > 1 {
		caps.Trains = transport.Trains{MaxSegments: cfg.Trains, MaxBytes: 65487}
	}
	return caps
}

// WriteBatch sends b at the present virtual time. It never fails for a size: what
// is larger than the MTU is dropped and counted by the network.
func (c *Conn) WriteBatch(b []transport.Tx) (int, error) {
	caps := c.Caps()
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp()
	for i := range b {
		if c.closed {
			return i, errClosed
		}
		t := &b[i]
		if err := transport.CheckTx(t, c.addr, caps.Trains); err != nil {
			return i, err
		}
		packets := t.Packets()
		for p := range packets {
			f := n.frames.get()
			id := uint16(p)
			if packets == 1 && caps.FullIPControl {
				id = t.ID
			}
			f.build(c.addr, t.Dst.WithZone(""), t.SrcPort, t.TOS, id, t.Packet(p))
			c.stats.TxPackets++
			c.stats.TxBytes += uint64(len(t.Packet(p)))
			n.send(linkKey{c.addr, f.dst}, f)
		}
		if packets > 1 {
			c.stats.TxTrains++
		}
	}
	n.catchUp() // links without delay deliver before the call returns
	n.wake()
	return len(b), nil
}

// ReadBatch takes packets that have arrived. With wait the network must be run
// or advanced by another goroutine.
func (c *Conn) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	for i := range b {
		if cap(b[i].Buf) == 0 {
			return 0, transport.ErrNoBuffer
		}
	}
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for {
		c.net.catchUp()
		n := 0
		for n < len(b) && c.queued() > 0 && !c.closed {
			if c.take(&b[n]) {
				n++
			}
		}
		switch {
		case c.closed:
			return 0, errClosed
		case n > 0 || !wait || len(b) == 0:
			return n, nil
		}
		c.readable.Wait()
	}
}

// WaitRead blocks until a packet has arrived.
func (c *Conn) WaitRead() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for {
		c.net.catchUp()
		switch {
		case c.closed:
			return errClosed
		case c.queued() > 0:
			return nil
		}
		c.readable.Wait()
	}
}

// Waiting returns how many packets have arrived and were not read.
func (c *Conn) Waiting() int {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.queued()
}

// Release does nothing: slots are the caller's own.
func (c *Conn) Release([]transport.Rx) {}

// Stats returns the host's counters.
func (c *Conn) Stats() transport.Stats {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.stats
}

// Close takes the host off the network. Packets on the way to it find nobody,
// until another host takes the address.
func (c *Conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.closeLocked()
	return nil
}

func (c *Conn) closeLocked() {
	c.closed = true
	for c.queued() > 0 {
		c.net.frames.put(c.pop())
	}
	delete(c.net.hosts, c.addr)
	c.readable.Broadcast()
}

func (c *Conn) queued() int { return len(c.queue) - c.head }

// enqueue takes a frame that arrived, unless the queue is full.
func (c *Conn) enqueue(f *frame) bool {
	if c.bytes+len(f.payload()) > c.net.cfg.RecvQueue {
		return false
	}
	if len(c.queue) == cap(c.queue) && c.head > len(c.queue)/2 {
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue, c.head = c.queue[:n], 0
	}
	c.queue = append(c.queue, f)
	c.bytes += len(f.payload())
	c.readable.Broadcast()
	return true
}

func (c *Conn) pop() *frame {
	f := c.queue[c.head]
	c.queue[c.head] = nil
	c.head++
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.bytes -= len(f.payload())
	return f
}

// take moves the oldest frame into a slot; false when the slot is too small.
func (c *Conn) take(r *transport.Rx) bool {
	f := c.pop()
	defer c.net.frames.put(f)
	data := f.payload()
	if cap(r.Buf) < len(data) {
		c.stats.RxTruncated++
		return false
	}
	r.Data = r.Buf[:len(data)]
	copy(r.Data, data)
	r.Seg, r.Lease = 0, 0
	r.Src, r.Dst, r.SrcPort, r.TOS = f.src, f.dst, f.srcPort, f.tos
	r.HaveID, r.ID, r.Frag, r.TTL = false, 0, 0, 0
	if !c.net.cfg.HideHeaders {
		r.TTL = f.ttl
		if f.src.Is4() {
			r.HaveID, r.ID, r.Frag = true, f.id, f.frag
		}
	}
	c.stats.RxPackets++
	c.stats.RxBytes += uint64(len(data))
	return true
}
