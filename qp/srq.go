package qp

import (
	"fmt"
	"sync"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/wr"
)

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	// PD resolves the receives' keys.
	PD *mr.PD
	// MaxWR is the number of receives that can wait, 1..[MaxWR], 0 means 1024.
	MaxWR int
	// MaxSGE is the number of entries of a receive, 1..[MaxSGE], 0 means 4.
	MaxSGE int
	// Events gets [EventSRQLimit]; nil drops it.
	Events *EventQueue
}

// SRQ is a receive queue that many queue pairs take from, in the order in which
// their messages arrive. All methods may be called from any goroutine. Its lock
// is a leaf under the queue pairs' locks.
type SRQ struct {
	cfg SRQConfig // set once

	mu    sync.Mutex
	ring  recvRing // guarded by mu
	limit int      // guarded by mu; 0: no event asked for
	users int      // guarded by mu
	gone  bool     // guarded by mu
}

// NewSRQ makes a shared receive queue, or returns a *[ConfigError] or
// mr.ErrPDClosed.
func NewSRQ(cfg SRQConfig) (*SRQ, error) {
	cfg.MaxWR = orDefault(cfg.MaxWR, 1024)
	cfg.MaxSGE = orDefault(cfg.MaxSGE, DefaultSGE)
	switch {
	case cfg.PD == nil:
		return nil, &ConfigError{"SRQConfig.PD", "missing", "a protection domain"}
	case cfg.MaxWR < 1 || cfg.MaxWR > MaxWR:
		return nil, &ConfigError{"SRQConfig.MaxWR", cfg.MaxWR, fmt.Sprintf("1 to %d", MaxWR)}
	case cfg.MaxSGE < 1 || cfg.MaxSGE > MaxSGE:
		return nil, &ConfigError{"SRQConfig.MaxSGE", cfg.MaxSGE, fmt.Sprintf("1 to %d", MaxSGE)}
	}
	if err := cfg.PD.Retain(); err != nil {
		return nil, err
	}
	return &SRQ{cfg: cfg, ring: recvRing{limit: cfg.MaxWR, sge: cfg.MaxSGE}}, nil
}

// Post appends receives. The error is a *[PostError].
func (s *SRQ) Post(wrs ...RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range wrs {
		if err := s.post(&wrs[i]); err != nil {
			return &PostError{Index: i, WRID: wrs[i].ID, Err: err}
		}
	}
	return nil
}

func (s *SRQ) post(req *RecvWR) error {
	if s.gone {
		return &StateError{Op: "post to shared receive queue", State: Reset, Advice: "it was closed"}
	}
	return s.ring.post(s.cfg.PD, req)
}

// post checks and appends one receive.
func (r *recvRing) post(pd *mr.PD, req *RecvWR) error {
	if len(req.SGE) > r.sge {
		return tooManySGE(len(req.SGE), r.sge)
	}
	if r.full() {
		return fmt.Errorf("%w: it holds %d; wait for completions, or make it larger", ErrRecvQueueFull, r.limit)
	}
	spans, err := resolve(pd, req.SGE, mr.LocalWrite, r.next())
	if err != nil {
		return err
	}
	r.push(req.ID, spans)
	return nil
}

// Take implements wr.ReceiveSource.
func (s *SRQ) Take(out *wr.Receive) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.ring.take(out)
	if ok && s.ring.len() < s.limit {
		s.limit = 0
		s.cfg.Events.put(Event{Type: EventSRQLimit, SRQ: s})
	}
	return ok
}

// Arm asks for one [EventSRQLimit] when fewer than limit receives are left, 1 to
// the queue's size; 0 takes it back.
func (s *SRQ) Arm(limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit < 0 || limit > s.cfg.MaxWR {
		return &ConfigError{"limit", limit, fmt.Sprintf("0 to %d", s.cfg.MaxWR)}
	}
	s.limit = limit
	return nil
}

// Len returns the number of receives that wait.
func (s *SRQ) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring.len()
}

// Close frees the queue; receives that wait are forgotten. It fails with an
// error that unwraps to [ErrBusy] while queue pairs use it. Closing twice is fine.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return nil
	case s.users > 0:
		return fmt.Errorf("%w: %d queue pairs take from the shared receive queue, close them first", ErrBusy, s.users)
	}
	s.gone = true
	s.ring.reset()
	s.cfg.PD.Release()
	return nil
}

func (s *SRQ) retain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return &ConfigError{"SRQ", "closed", "an open shared receive queue"}
	}
	s.users++
	return nil
}

func (s *SRQ) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
}
