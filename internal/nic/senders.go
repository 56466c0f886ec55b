package nic

import "sync"

// senderPool keeps the senders that posting goroutines borrow.
type senderPool struct {
	mu     sync.Mutex
	list   []*sender // guarded by mu
	closed bool      // nobody keeps a sender any more; guarded by mu
}

// keepSenders bounds the spare senders of a NIC, some 600 KiB each, but for one a
// shard.
const keepSenders = 4

func (p *senderPool) borrow(n *NIC) *sender {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := len(p.list); k > 0 {
		s := p.list[k-1]
		p.list = p.list[:k-1]
		return s
	}
	s := newSender(n)
	s.patience = postPatience
	return s
}

func (p *senderPool) giveBack(s *sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.list) >= max(keepSenders/len(s.nic.rx), 1) {
		s.free()
		return
	}
	p.list = append(p.list, s)
}

func (p *senderPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.list {
		s.free()
	}
	p.list = nil
}
