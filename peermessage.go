package hixl

import (
	"fmt"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/peerwire"
)

// say sends a message, for a handle that waits for its acknowledgement, or for
// nobody. p.mu is held.
func (p *Peer) say(now mono.Time, h *Handle, m *peerwire.Message) {
	var b [peerwire.MaxMessage]byte
	x := piece{h: h, kind: pieceMessage, op: Notify, inline: m.Append(b[:0])}
	p.put(now, &x)
}

// message deals with a message of the peer, on the dispatcher. An error is the
// peer's fault.
func (p *Peer) message(now mono.Time, l *lane, m *peerwire.Message) error {
	if m.Kind == peerwire.Notify { // of whatever generation: its sender counts on it
		p.deliver(Notification{Name: string(m.Name), Data: append([]byte(nil), m.Data...)})
		return nil
	}
	p.mu.Lock()
	defer p.release()
	if l.gen != p.cur && l.gen != p.next {
		return nil
	}
	switch m.Kind {
	case peerwire.Lookup:
		if int(p.queue.Len()) >= p.c.cfg.MaxQueued {
			return fmt.Errorf("%w: %d lookups are not answered yet", errOffence, p.queue.Len())
		}
		d, ok := p.c.lookup(p, m.Name)
		p.say(now, nil, &peerwire.Message{Kind: peerwire.Found, Number: m.Number, Known: ok, Region: d.wire()})
	case peerwire.Found:
		p.found(m)
	case peerwire.Revoke:
		p.gone(m.ID)
	case peerwire.Credit:
		p.inc.more(l.gen.credits, m.Count)
		p.pump(now)
	case peerwire.Bye, peerwire.Notify:
	}
	return nil
}

// errOffence is the end of a peer that does not keep to the protocol.
var errOffence = fmt.Errorf("hixl: the peer broke the protocol between contexts")

// offended ends a connection whose peer does not keep to the protocol.
func (p *Peer) offended(now mono.Time, l *lane, err error) {
	p.mu.Lock()
	defer p.release()
	if l.gen == p.cur {
		p.breakUp(now, fmt.Errorf("%w: %w", errOffence, err))
		p.rearm()
	}
}

// revoke tells the peer that a region is gone, if it has looked it up.
func (p *Peer) revoke(id uint64) {
	p.mu.Lock()
	defer p.release()
	if _, knows := p.told[id]; !knows {
		return
	}
	if delete(p.told, id); p.cur != nil {
		p.say(p.c.nic.nic.Now(), nil, &peerwire.Message{Kind: peerwire.Revoke, ID: id})
	}
}

// report tells the peer how many notifications were taken, if it is time to. p.mu
// is held.
func (p *Peer) report(now mono.Time) {
	if p.cur == nil {
		return
	}
	if n, due := p.inc.report(p.c.cfg.Notifications); due {
		p.say(now, nil, &peerwire.Message{Kind: peerwire.Credit, Count: n})
	}
}
