package faults

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gohixl/hixl/transport"
)

// Conn is a Conn with faults in what it sends.
type Conn struct {
	transport.Conn // set once
	cfg            Config

	mu     sync.Mutex // guards all below, and is held while the inner Conn sends
	rng    *rand.Rand
	counts Counts
	closed bool
	timer  *time.Timer // runs while something is held
	held   []held      // oldest first
	out    []outgoing  // being sent
	batch  []transport.Tx
	spare  [][]byte // storage of copies
}

var _ transport.Sharded = (*Conn)(nil)

// held is a copy of a packet that others may pass.
type held struct {
	tx      transport.Tx
	passing int // how many more may
	until   time.Time
}

// outgoing says where a packet of the batch came from.
type outgoing struct {
	index int  // in the caller's batch, or -1 when it is of an earlier one
	copy  bool // its storage is ours
}

// Wrap puts faults into what c sends. It owns c, which must be used through it
// from now on. The error is a *transport.ConfigError.
func Wrap(c transport.Conn, cfg Config) (*Conn, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f := &Conn{Conn: c, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6661756c7473))}
	f.timer = time.AfterFunc(time.Hour, f.expire)
	f.timer.Stop()
	return f, nil
}

// Caps are those of the inner Conn, without trains unless [Config.Trains] lets
// them through.
func (c *Conn) Caps() transport.Caps {
	caps := c.Conn.Caps()
	if !c.cfg.Trains {
		caps.Trains = transport.Trains{}
	}
	return caps
}

// Shards returns the parts of the inner Conn, since nothing befalls what is received,
// or one for all of it.
func (c *Conn) Shards() []transport.Reader {
	if s, ok := c.Conn.(transport.Sharded); ok {
		return s.Shards()
	}
	return []transport.Reader{c.Conn}
}

// Counts returns the faults made so far.
func (c *Conn) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// WriteBatch sends b with faults. Lost packets count as sent.
func (c *Conn) WriteBatch(b []transport.Tx) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	var bad error
	n := len(b)
	trains := c.Caps().Trains
	for i := range b {
		if bad = transport.CheckTx(&b[i], c.LocalAddr(), trains); bad != nil {
			n = i
			break
		}
		c.add(i, b[i])
	}
	if sent, err := c.flush(n); err != nil {
		return sent, err
	}
	return n, bad
}

// fate is what befalls a packet.
type fate struct{ lost, corrupted, duplicated, reordered bool }

func (c *Conn) draw() (f fate) {
	f.lost = c.chance(c.cfg.Loss)
	if !f.lost {
		f.corrupted, f.duplicated, f.reordered = c.chance(c.cfg.Corrupt), c.chance(c.cfg.Duplicate), c.chance(c.cfg.Reorder)
	}
	return f
}

// add decides about the packets of one Tx of the caller's. What nothing befalls
// stays together.
func (c *Conn) add(index int, tx transport.Tx) {
	first, n := 0, tx.Packets()
	for k := range n {
		f := c.draw()
		if f == (fate{}) {
			if len(c.held) > 0 {
				c.run(index, &tx, first, k+1)
				first = k + 1
				c.pass()
			}
			continue
		}
		c.run(index, &tx, first, k)
		first = k + 1
		single := tx
		single.Data, single.Seg = tx.Packet(k), 0
		c.suffer(index, single, f)
	}
	c.run(index, &tx, first, n)
}

// run lets packets first to end of tx leave together.
func (c *Conn) run(index int, tx *transport.Tx, first, end int) {
	if first == end {
		return
	}
	part := *tx
	if n := tx.Packets(); n > 1 {
		part.Data = tx.Data[first*tx.Seg : min(end*tx.Seg, len(tx.Data))]
		if end-first == 1 {
			part.Seg = 0
		}
	}
	c.put(outgoing{index: index}, part)
}

// suffer does to one packet what befalls it.
func (c *Conn) suffer(index int, tx transport.Tx, f fate) {
	if f.lost {
		c.counts.Lost++
		return
	}
	o := outgoing{index: index}
	if f.corrupted {
		c.counts.Corrupted++
		tx.Data, o.copy = c.clone(tx.Data), true
		bit := c.rng.IntN(8 * len(tx.Data))
		tx.Data[bit/8] ^= 1 << (bit % 8)
	}
	if f.duplicated {
		c.counts.Duplicated++
		c.put(outgoing{index: index}, tx)
	}
	if f.reordered {
		c.counts.Reordered++
		if !o.copy {
			tx.Data = c.clone(tx.Data)
		}
		c.hold(tx)
		return
	}
	c.put(o, tx)
	c.pass()
}

// hold keeps a packet whose storage is ours.
func (c *Conn) hold(tx transport.Tx) {
	if len(c.held) == MaxHeld {
		c.release(0)
	}
	c.held = append(c.held, held{tx, 1 + c.rng.IntN(MaxPassing), time.Now().Add(HoldTime)})
	if len(c.held) == 1 {
		c.timer.Reset(HoldTime)
	}
}

// pass counts a packet that overtakes the held ones, and lets go of those that
// have been overtaken enough.
func (c *Conn) pass() {
	for i := 0; i < len(c.held); {
		if c.held[i].passing--; c.held[i].passing > 0 {
			i++
			continue
		}
		c.release(i)
	}
}

// release moves a held packet to the batch.
func (c *Conn) release(i int) {
	c.put(outgoing{index: -1, copy: true}, c.held[i].tx)
	c.held = append(c.held[:i], c.held[i+1:]...)
}

func (c *Conn) put(o outgoing, tx transport.Tx) {
	c.out = append(c.out, o)
	c.batch = append(c.batch, tx)
}

// flush sends the batch. For an error with a packet of the caller's it returns
// the packet's index; n is the number of packets that were dealt with otherwise.
func (c *Conn) flush(n int) (int, error) {
	defer c.reset()
	for done := 0; done < len(c.batch); {
		k, err := c.Conn.WriteBatch(c.batch[done:])
		done += k
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return 0, err
		case c.out[done].index >= 0:
			return c.out[done].index, err
		default:
			done++ // a packet of an earlier batch was reported as sent: it is lost
		}
	}
	return n, nil
}

// reset empties the batch and takes copies back.
func (c *Conn) reset() {
	for i, o := range c.out {
		if o.copy {
			c.spare = append(c.spare, c.batch[i].Data)
		}
	}
	clear(c.batch)
	c.out, c.batch = c.out[:0], c.batch[:0]
}

// expire sends what has been held long enough. It runs on the timer.
func (c *Conn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	now := time.Now()
	for len(c.held) > 0 && !c.held[0].until.After(now) {
		c.release(0)
	}
	_, _ = c.flush(0) // reported as sent already
	if len(c.held) > 0 {
		c.timer.Reset(c.held[0].until.Sub(now))
	}
}

// Close closes the inner Conn. What is held is lost.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.timer.Stop()
	c.held = nil
	return c.Conn.Close()
}

func (c *Conn) clone(b []byte) []byte {
	if n := len(c.spare); n > 0 {
		s := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return append(s[:0], b...)
	}
	return append(make([]byte, 0, max(len(b), 4200)), b...)
}

func (c *Conn) chance(p float64) bool { return p > 0 && c.rng.Float64() < p }
