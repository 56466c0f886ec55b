package chaostest

import (
	"encoding/binary"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/syncproto"
)

const lease = 2 * time.Second

// lockHome is a lock that lies in the memory of a node, and those who want it. With
// the node goes the lock; the next has another.
type lockHome struct {
	w      *world
	home   *node
	life   int
	region *hixl.Region
	d      hixl.Descriptor
	last   uint64 // token
	took   int
	users  []*lockUser
}

type lockUser struct {
	n    *node
	life int // of the lock
	m    syncproto.Lock
	op   syncproto.Op
	h    *hixl.Handle
	at   mono.Time
	held bool
}

func (w *world) makeLocks() {
	for _, home := range []int{0, len(w.nodes) / 2} {
		h := &lockHome{w: w, home: w.nodes[home]}
		for i := range 5 {
			h.users = append(h.users, &lockUser{n: w.nodes[(home+3*i)%len(w.nodes)], at: w.now.Add(w.upTo(time.Second))})
		}
		w.locks = append(w.locks, h)
	}
}

// renew makes the lock of a node that has begun anew.
func (h *lockHome) renew() {
	h.life, h.last = h.home.life, 0
	b := make([]byte, 4096)
	var err error
	if h.region, err = h.home.c.Register(b, rights); err != nil {
		panic(err)
	}
	h.d = h.home.c.Describe(h.region)
}

// left forgets a user who is gone, in whatever state it was.
func (h *lockHome) left(n *node) {
	for _, u := range h.users {
		if u.n == n {
			u.h, u.held, u.m, u.life = nil, false, syncproto.Lock{}, 0
		}
	}
}

func (h *lockHome) nextAct(n *node) (at mono.Time) {
	for _, u := range h.users {
		if u.n == n && u.h == nil && !h.w.quiet {
			at = mono.Earliest(at, u.at)
		}
	}
	return at
}

func (h *lockHome) act(n *node) {
	if n == h.home && h.life != n.life {
		h.renew()
	}
	for _, u := range h.users {
		if u.n == n {
			h.turn(u)
		}
	}
}

// turn lets a user's machine go on.
func (h *lockHome) turn(u *lockUser) {
	w, now := h.w, h.w.now
	if u.h != nil {
		done, err := u.h.Poll()
		if !done {
			return
		}
		word := u.h.Result()
		u.h = nil
		if err != nil {
			u.m.Unknown(now)
			u.at = now.Add(20 * time.Millisecond)
		} else {
			u.m.Done(now, syncproto.Result{Word: word})
		}
		h.look(u)
		return
	}
	if now < u.at || w.quiet {
		return
	}
	if u.life != h.home.life || h.life != h.home.life {
		u.at = now.Add(100 * time.Millisecond)
		if h.life == h.home.life && h.home.c != nil {
			u.life, u.held = h.life, false
			u.m = syncproto.NewLock(syncproto.LockConfig{Lease: lease, Margin: lease / 10, MinPause: 20 * time.Millisecond, MaxPause: 200 * time.Millisecond})
		}
		return
	}
	switch op := u.m.Next(now); op.Kind {
	case syncproto.None:
		h.rest(u)
	case syncproto.Pause:
		u.at = op.At
	default:
		u.op = op
		if err := h.start(u, op); err != nil {
			u.m.Unknown(now)
			u.at = now.Add(100 * time.Millisecond)
			h.look(u)
		}
	}
}

func (h *lockHome) start(u *lockUser, op syncproto.Op) error {
	p, err := u.n.c.Peer(h.home.addr)
	if err != nil {
		return err
	}
	r, err := p.Import(h.d)
	if err != nil {
		return err
	}
	t := &hixl.Transfer{Op: hixl.FetchAdd, Descs: []hixl.Desc{{Remote: r, RemoteOff: op.Off}}}
	if op.Kind == syncproto.CompareSwap {
		t.Op, t.Compare, t.Operand = hixl.CompareSwap, op.Compare, op.Operand
	}
	u.h, err = p.Start(t)
	return err
}

// rest gives a machine at rest something to do.
func (h *lockHome) rest(u *lockUser) {
	w, now := h.w, h.w.now
	switch {
	case u.m.Lost():
		u.m.Rest()
		u.held = false
		u.at = now.Add(w.upTo(10 * time.Second))
	case !u.held:
		u.m.Acquire(false)
	case w.rng.IntN(3) == 0 || !u.m.Held(now):
		u.m.Release()
		u.held = false
		u.at = now.Add(w.upTo(30 * time.Second))
	default:
		u.m.Renew(now)
		u.at = now.Add(w.upTo(lease / 2))
	}
}

// look checks, when a user may have got the lock, that nobody else has it.
func (h *lockHome) look(u *lockUser) {
	w, now := h.w, h.w.now
	if !u.m.Held(now) {
		return
	}
	for _, other := range h.users {
		if other != u && other.life == u.life && other.held && other.m.Held(now) {
			w.fail("nodes %d and %d hold the lock of node %d", u.n.i, other.n.i, h.home.i)
		}
	}
	if u.held {
		return
	}
	u.held = true
	h.took++
	w.tally["locks"]++
	w.log("node %d has lock %d: %d", u.n.i, h.home.i, u.m.Token())
	if u.life == h.life && u.m.Token() <= h.last {
		w.fail("node %d has token %d, after %d", u.n.i, u.m.Token(), h.last)
	}
	if u.life == h.life {
		h.last = u.m.Token()
		if v := syncproto.Token(binary.NativeEndian.Uint64(h.region.Bytes())); h.home.c != nil && v < u.m.Token() {
			w.fail("node %d has token %d, and the lock is at %d", u.n.i, u.m.Token(), v)
		}
	}
}
