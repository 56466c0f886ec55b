package qp

import (
	"github.com/gohixl/hixl/cq"
)

// completions holds what the engine has finished until it may be shown. Sends
// need to wait for nothing but the end of the drain. A receive waits until the
// packets of the drain that carried its ACK have left (design: a responder's
// ACK leaves before its receive completion is published).
type completions struct {
	sends []cq.Completion
	recvs []received // from first on
	first int
	ready int // recvs before it know their drain
}

type received struct {
	c     cq.Completion
	drain uint64 // to be shown when it has left
}

func (d *completions) reset() {
	d.sends, d.recvs, d.first, d.ready = d.sends[:0], d.recvs[:0], 0, 0
}

func (d *completions) empty() bool { return len(d.sends) == 0 && d.first == len(d.recvs) }

// collect takes over what the engine finished.
func (d *completions) collect(from engine) {
	done := from.Completions()
	for i := range done {
		if done[i].Opcode.IsRecv() {
			d.recvs = append(d.recvs, received{c: done[i]})
		} else {
			d.sends = append(d.sends, done[i])
		}
	}
	from.ClearCompletions()
}

// trim gives back the memory of what is empty.
func (d *completions) trim() {
	if d.empty() {
		d.sends = nil
		d.recvs, d.first, d.ready = nil, 0, 0
	}
}

// seal notes that the ACKs of all receives so far are in drains up to drain.
func (d *completions) seal(drain uint64) {
	for ; d.ready < len(d.recvs); d.ready++ {
		d.recvs[d.ready].drain = drain
	}
}

// publish gives to the sinks what may be shown once drains up to left have left,
// and reports whether all were taken.
func (d *completions) publish(cfg *Config, left uint64) bool {
	ok := true
	for i := range d.sends {
		ok = cfg.SendSink.Complete(&d.sends[i]) && ok
	}
	d.sends = d.sends[:0]
	for d.first < d.ready && d.recvs[d.first].drain <= left {
		ok = cfg.RecvSink.Complete(&d.recvs[d.first].c) && ok
		d.first++
	}
	switch {
	case d.first == len(d.recvs):
		d.recvs, d.first, d.ready = d.recvs[:0], 0, 0
	case d.first >= compactAt:
		n := copy(d.recvs, d.recvs[d.first:])
		d.recvs, d.ready, d.first = d.recvs[:n], d.ready-d.first, 0
	}
	return ok
}

// compactAt is how many shown receives are kept before the list moves up.
const compactAt = 256
