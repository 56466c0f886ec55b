package chaostest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
)

type flowKind uint8

const (
	flowWrites flowKind = iota // into the flow's slot: writes, with news or without, and pushes
	flowReads                  // reads, adds and lookups
)

// flow is one after the other what a node does to another, each when the one before
// is over and fenced.
type flow struct {
	n, to  *node
	k      int // the slot that is its own at to
	kind   flowKind
	at     mono.Time // of the next
	now    *hop
	named  *hixl.RemoteRegion // found by name, perhaps long ago
	parted bool               // the peer was closed: what it was told may be lost
}

// hop is an operation of a flow.
type hop struct {
	f        *flow
	id       uint64
	what     string
	h        *hixl.Handle
	remote   *hixl.RemoteRegion
	to       []*store // where it may land
	want     []byte   // what it writes, or has read
	n        int      // bytes
	news     bool
	ended    int // calls of Done
	asked    bool
	cancel   mono.Time // when to give it up, 0 never
	canceled bool
	refused  bool // some of it
	err      error
	life     int // of the node it goes to, when it began
	over     bool
}

// nextAct is when a flow of the node, or a lock of it, has something to do by time
// alone.
func (n *node) nextAct() (at mono.Time) {
	for _, f := range n.flows {
		switch {
		case f.now == nil && !n.w.quiet:
			at = mono.Earliest(at, f.at)
		case f.now != nil && !f.now.canceled:
			at = mono.Earliest(at, f.now.cancel)
		}
	}
	for _, h := range n.w.locks {
		at = mono.Earliest(at, h.nextAct(n))
	}
	return at
}

// act lets the node's flows go on.
func (n *node) act() {
	for _, f := range n.flows {
		if f.now != nil {
			f.follow()
		}
		if f.now == nil && n.w.now >= f.at && !n.w.quiet {
			f.begin()
		}
	}
	for _, h := range n.w.locks {
		h.act(n)
	}
}

// pause sets the time of the next: often soon, at times later.
func (f *flow) pause() {
	w := f.n.w
	if w.rng.IntN(3) == 0 {
		f.at = w.now.Add(time.Millisecond + w.upTo(20*time.Millisecond))
	} else {
		f.at = w.now.Add(w.upTo(90 * time.Second))
	}
}

// region chooses what to act on: what the name has led to, what a descriptor says that
// is right, or one that is of the past.
func (f *flow) region(p *hixl.Peer) (*hixl.RemoteRegion, error) {
	w := f.n.w
	switch w.rng.IntN(4) {
	case 0:
		if f.named != nil {
			return f.named, nil
		}
	case 1:
		return p.Import(f.to.old[w.rng.IntN(len(f.to.old))].d)
	default:
	}
	return p.Import(f.to.data.d)
}

// storeOf finds the store that a region is, as it is known now.
func (f *flow) storeOf(r *hixl.RemoteRegion) *store {
	d := r.Descriptor()
	for _, s := range f.to.old {
		if s.d.Context == d.Context && s.d.ID == d.ID {
			return s
		}
	}
	return nil
}

func (f *flow) begin() {
	n, w := f.n, f.n.w
	f.pause()
	p, err := n.c.Peer(f.to.addr)
	if err != nil {
		w.fail("node %d: %v", n.i, err)
		return
	}
	w.ops++
	o := &hop{f: f, id: w.ops, life: f.to.life}
	if w.rng.IntN(3) == 0 {
		o.cancel = w.now.Add(time.Duration(1) << w.rng.IntN(32)) // up to 4 s
	}
	if f.kind == flowReads && w.rng.IntN(5) == 0 {
		o.what = "lookup"
		o.h, err = p.StartRegion("data")
	} else if o.remote, err = f.region(p); err == nil {
		o.mark(o.remote)
		if f.kind == flowReads {
			err = o.readOrAdd(p)
		} else {
			err = o.write(p)
		}
	}
	w.log("node %d -> %d: %d %s (%v)", n.i, f.to.i, o.id, o.what, err != nil)
	if o.err = err; err != nil {
		w.tally["refused"]++
		if !typed(err) {
			w.fail("%s was refused: %v", o.what, err)
		}
		if o.want == nil || f.kind == flowReads {
			return
		}
		if o.h == nil { // nothing was begun
			o.settle()
			return
		}
	}
	w.tally[o.what]++
	f.now = o
	f.follow()
}

// local is the flow's piece of the node's own memory.
func (f *flow) local() (off uint64, b []byte) {
	off = uint64(f.k+int(f.kind)*fans) * slotStep
	return off, f.n.src.Bytes()[off:][:slotSize]
}

// mark notes where the operation may land.
func (o *hop) mark(r *hixl.RemoteRegion) {
	s := o.f.storeOf(r)
	if s == nil {
		o.f.n.w.fail("a region that nobody has ever had: %v", r.Descriptor())
		return
	}
	for _, x := range o.to {
		if x == s {
			return
		}
	}
	o.to = append(o.to, s)
	if o.f.kind != flowWrites {
		return
	}
	if err := s.slotErr(o.f.k); err != nil {
		o.f.n.w.errs = append(o.f.n.w.errs, err)
	}
	s.busy[o.f.k]++
}

// fill makes the local piece what is to be written.
func (o *hop) fill(n int) (off uint64) {
	off, b := o.f.local()
	for i := range b[:n] {
		b[i] = byte(o.id*7 + uint64(i)*13 + uint64(i>>8) | 1)
	}
	o.want, o.n = bytes.Clone(b[:n]), n
	return off
}

func (o *hop) write(p *hixl.Peer) (err error) {
	w, f := o.f.n.w, o.f
	n := 1 + w.rng.IntN(slotSize)
	if w.rng.IntN(2) == 0 {
		n = 1 + w.rng.IntN(200)
	}
	off := o.fill(n)
	at := uint64(slotAt + f.k*slotStep)
	t := &hixl.Transfer{Op: hixl.Write, Done: func(*hixl.Handle) { o.ended++ }}
	kind := w.rng.IntN(6)
	if kind == 5 {
		return o.push(p, off, at)
	}
	for left := uint64(n); left > 0; { // a list of up to three
		k := left
		if len(t.Descs) < 2 && w.rng.IntN(2) == 0 {
			k = 1 + w.rng.Uint64N(left)
		}
		t.Descs = append(t.Descs, hixl.Desc{Local: f.n.src, LocalOff: off, Remote: o.remote, RemoteOff: at, Len: k})
		off, at, left = off+k, at+k, left-k
	}
	switch o.what = "write"; kind {
	case 0:
		o.what, t.Op, t.Imm, o.news = "write with immediate", hixl.WriteImm, uint32(o.id), true
	case 1, 2:
		o.what, o.news = "write and notify", true
		t.Notify = &hixl.Notification{Name: "written", Data: binary.BigEndian.AppendUint64(nil, o.id)}
	default:
	}
	if w.rng.IntN(3) == 0 {
		t.Flags = hixl.Ordered
	}
	o.h, err = p.Start(t)
	o.asked = true
	return err
}

// push writes by pieces that nobody waits for, and flushes.
func (o *hop) push(p *hixl.Peer, off, at uint64) (err error) {
	o.what, o.cancel = "push", 0 // to give a Flush up is not to give up what it waits for
	for left := uint64(o.n); left > 0 && err == nil; {
		k := min(left, 1+o.f.n.w.rng.Uint64N(1000))
		err = p.Push(hixl.Desc{Local: o.f.n.src, LocalOff: off, Remote: o.remote, RemoteOff: at, Len: k})
		off, at, left = off+k, at+k, left-k
	}
	var flush error
	if o.h, flush = p.FlushAsync(); flush != nil {
		return flush
	}
	if o.refused = err != nil; o.refused && !typed(err) {
		o.f.n.w.fail("a push was refused: %v", err)
	}
	return nil
}

func (o *hop) readOrAdd(p *hixl.Peer) (err error) {
	f := o.f
	done := func(*hixl.Handle) { o.ended++ }
	if f.n.w.rng.IntN(2) == 0 {
		o.what, o.n = "read", constSize
		off, b := f.local()
		for i := range b {
			b[i] = 0x55
		}
		o.h, err = p.Start(&hixl.Transfer{
			Op: hixl.Read, Descs: []hixl.Desc{{Local: f.n.src, LocalOff: off, Remote: o.remote, RemoteOff: constAt, Len: constSize}}, Done: done,
		})
	} else {
		o.what, o.n = "add", 8
		o.h, err = p.Start(&hixl.Transfer{Op: hixl.FetchAdd, Descs: []hixl.Desc{{Remote: o.remote, RemoteOff: countAt}}, Operand: 1, Done: done})
	}
	o.asked = true
	return err
}

// follow looks how the operation is, and ends it when it is over and fenced.
func (f *flow) follow() {
	o, w := f.now, f.n.w
	if !o.cancel.IsZero() && w.now >= o.cancel && !o.canceled {
		o.canceled = true
		w.tally["cancels"]++
		w.log("cancel %d", o.id)
		o.h.StartCancel()
	}
	done, err := o.h.Poll()
	if !done {
		return
	}
	if !o.over {
		o.over = true
		w.log("%d is over: %v", o.id, err != nil)
		o.result(err)
	}
	if o.fenced(err) && (!o.asked || o.ended > 0) { // else it is about to be told
		o.settle()
	}
}

// fenced reports whether nothing of it lands any more.
func (o *hop) fenced(err error) bool {
	if !o.h.Fenced() {
		return false
	}
	var t *hixl.TransferError
	if o.what == "push" && errors.As(err, &t) && t.Handle != nil {
		return t.Handle.Fenced() // of the write that failed
	}
	return true
}

// result checks what the operation says of itself.
func (o *hop) result(err error) {
	f, w := o.f, o.f.n.w
	o.err = err
	name := fmt.Sprintf("%s %d of node %d at %d", o.what, o.id, f.n.i, f.to.i)
	if err != nil {
		w.tally["failed"]++
		if !typed(err) {
			w.fail("%s: an error of no type: %v", name, err)
		}
	}
	arrived := o.h.Arrived()
	if err == nil && o.what != "push" && o.what != "lookup" && arrived != uint64(o.n) {
		w.fail("%s is done with %d of %d bytes", name, arrived, o.n)
	}
	if o.remote != nil {
		if s := f.storeOf(o.remote); s != nil && len(o.to) > 0 && s != o.to[0] {
			o.mark(o.remote) // it has followed its name
		}
	}
	var t *hixl.TransferError
	executed := errors.As(err, &t) && t.Executed
	switch o.what {
	case "lookup":
		if err == nil {
			f.named = o.h.Region()
		}
	case "add":
		for _, s := range o.to {
			switch {
			case err == nil:
				if v := o.h.Result(); s.seen[v] {
					w.fail("%s got %d, as another had", name, v)
				} else {
					s.seen[v] = true
				}
				s.acked++
			case executed:
				s.unknown++
			}
			if len(o.to) > 1 { // nobody knows which
				s.unknown++
			}
		}
	case "read":
		_, b := f.local()
		right := err != nil
		for _, s := range o.to {
			right = right || bytes.Equal(b[:constSize], s.b[constAt:slotAt])
		}
		if !right {
			w.fail("%s has read what is not there", name)
		}
	default:
		o.written(name, err, arrived)
	}
}

// written checks what a write has left.
func (o *hop) written(name string, err error, arrived uint64) {
	f, w := o.f, o.f.n.w
	most := 0
	for _, s := range o.to {
		same := 0
		for i, b := range s.slot(f.k)[:o.n] {
			if b == o.want[i] {
				same++
			}
		}
		most = max(most, same)
	}
	if err == nil && !o.refused && most != o.n && f.to.life == o.life {
		w.fail("%s is done, and %d of %d bytes are there", name, most, o.n)
	}
	if o.what != "push" && arrived > uint64(most) && len(o.to) == 1 && f.to.life == o.life {
		w.fail("%s says that %d bytes have arrived, and %d are there", name, arrived, most)
	}
	if err == nil && o.news {
		w.expect[o.id] = o
	}
}

// settle ends an operation that is fenced: its memory, here and there, is others'.
func (o *hop) settle() {
	f := o.f
	f.now = nil
	if o.asked && o.h != nil && o.ended != 1 {
		f.n.w.fail("%s %d was ended %d times", o.what, o.id, o.ended)
	}
	if f.kind != flowWrites {
		return
	}
	for _, s := range o.to {
		if s.busy[f.k]--; s.busy[f.k] == 0 {
			s.slots[f.k], s.by[f.k] = bytes.Clone(s.slot(f.k)), fmt.Sprintf("%s %d, error %v", o.what, o.id, o.err)
		}
	}
	if f.n.c != nil {
		_, b := f.local()
		for i := range b { // what a late packet would bring
			b[i] = 0xEE
		}
	}
}

// orphan ends the flow's operation with its node, which must have ended it.
func (f *flow) orphan() {
	f.named = nil
	o := f.now
	if o == nil {
		return
	}
	done, err := o.h.Poll()
	if !done {
		f.n.w.fail("%s %d was lost when node %d ended", o.what, o.id, f.n.i)
	} else if !o.over {
		o.over = true
		o.result(err)
	}
	if o.asked && o.ended != 1 {
		f.n.w.fail("%s %d was ended %d times", o.what, o.id, o.ended)
	}
	if f.kind == flowWrites { // what is under way may land for as long as packets live
		for _, s := range o.to {
			s.slots[f.k] = nil
		}
	}
	o.settleLost()
}

// settleLost gives up an operation whose fence nobody will see.
func (o *hop) settleLost() {
	f := o.f
	f.now = nil
	if f.kind != flowWrites {
		return
	}
	for _, s := range o.to {
		s.busy[f.k]--
		s.slots[f.k] = nil
	}
	f.at = f.n.w.now.Add(time.Minute) // till then the slot is not written again
}

// notified takes a notification, which must be one that was sent, once, and speak the
// truth.
func (n *node) notified(x *hixl.Notification) {
	w := n.w
	id := uint64(x.Imm)
	if !x.IsImm {
		if x.Name != "written" || len(x.Data) != 8 {
			w.fail("node %d is told %q", n.i, x.Name)
			return
		}
		id = binary.BigEndian.Uint64(x.Data)
	}
	w.log("node %d is told of %d", n.i, id)
	w.tally["told"]++
	if w.told[id]++; w.told[id] > 1 {
		w.fail("node %d is told %d times of %d", n.i, w.told[id], id)
	}
	if x.Lost != 0 {
		w.fail("node %d had no room for %d notifications", n.i, x.Lost)
	}
	for _, from := range w.nodes {
		for _, f := range from.flows {
			o := f.now
			if o == nil || o.id != id || f.to != n {
				continue
			}
			there := false
			for _, s := range o.to {
				there = there || bytes.Equal(o.want, s.slot(f.k)[:o.n])
			}
			if !there {
				w.fail("node %d is told of %d, whose bytes are not there", n.i, id)
			}
		}
	}
}
