package bridge

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	maxFrame = 1 << 16 // longer than any frame without jumbo grams
	queueLen = 8192    // frames that wait for a slow port
	macLen   = 6
)

// ErrPort is what using a name that no port has, or has already, unwraps to.
var ErrPort = errors.New("bridge: no such port")

// Switch joins ports. Its zero value is not ready; see [New].
type Switch struct {
	mu      sync.Mutex
	ports   []*port          // guarded by mu, as all below
	where   map[string]*port // by MAC address
	rules   []*rule
	capture *capture
	closed  bool
	done    sync.WaitGroup
}

// New makes a switch without ports.
func New() *Switch { return &Switch{where: make(map[string]*port)} }

// port is one attachment. Its faults work on what comes in by it.
type port struct {
	name   string
	rw     io.ReadWriteCloser
	out    chan []byte
	faults injector
	counts Counts // guarded by Switch.mu, like gone
	gone   bool   // out is closed
}

// Attach joins a port, of which each Read gives and each Write takes one frame.
// The switch closes it, on Close or when it fails.
func (s *Switch) Attach(name string, rw io.ReadWriteCloser) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.find(name) != nil {
		return fmt.Errorf("%w to attach: %q is taken or the switch closed", ErrPort, name)
	}
	p := &port{name: name, rw: rw, out: make(chan []byte, queueLen)}
	p.faults.port = p
	s.ports = append(s.ports, p)
	s.done.Add(2)
	go s.receive(p)
	go s.send(p)
	return nil
}

// Detach removes a port and closes it.
func (s *Switch) Detach(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(name)
	if p == nil {
		return fmt.Errorf("%w: %q", ErrPort, name)
	}
	return s.remove(p)
}

// Close closes all ports and waits until nothing moves any more.
func (s *Switch) Close() error {
	s.mu.Lock()
	s.closed = true
	var err error
	for len(s.ports) > 0 {
		err = errors.Join(err, s.remove(s.ports[0]))
	}
	s.mu.Unlock()
	s.done.Wait()
	return errors.Join(err, s.StopCapture())
}

// find returns the port of that name. mu is held.
func (s *Switch) find(name string) *port {
	for _, p := range s.ports {
		if p.name == name {
			return p
		}
	}
	return nil
}

// remove forgets a port, once. mu is held.
func (s *Switch) remove(p *port) error {
	for i := range s.ports {
		if s.ports[i] != p {
			continue
		}
		s.ports = append(s.ports[:i], s.ports[i+1:]...)
		for mac, q := range s.where {
			if q == p {
				delete(s.where, mac)
			}
		}
		p.faults.stop()
		p.gone = true
		close(p.out)
		return p.rw.Close()
	}
	return nil
}

// receive takes frames from a port until it fails.
func (s *Switch) receive(p *port) {
	defer s.done.Done()
	buf := make([]byte, maxFrame)
	for {
		n, err := p.rw.Read(buf)
		if err != nil {
			break
		}
		s.mu.Lock()
		if n >= 2*macLen && !p.gone {
			s.accept(p, append([]byte(nil), buf[:n]...))
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.remove(p) // it has failed; closing it cannot tell more
}

// send gives a port its frames, until remove ends it. A frame that the port does
// not take is lost, as on a wire.
func (s *Switch) send(p *port) {
	defer s.done.Done()
	for frame := range p.out {
		if _, err := p.rw.Write(frame); err != nil {
			s.mu.Lock()
			p.counts.Refused++
			s.mu.Unlock()
		}
	}
}

// accept handles a frame that came in at a port; it is the switch's from here on.
// mu is held.
func (s *Switch) accept(p *port, frame []byte) {
	p.counts.Frames++
	if frame[macLen]&1 == 0 {
		s.where[string(frame[macLen:2*macLen])] = p
	}
	var v view
	if !v.look(frame) {
		s.forward(p, frame)
		return
	}
	p.counts.RoCE++
	if s.capture != nil {
		s.capture.write(frame)
	}
	if s.ruledOut(p, &v) {
		p.counts.Ruled++
		return
	}
	p.faults.pass(s, frame, &v)
}

// forward queues a frame for where its destination was seen, or everywhere. mu
// is held.
func (s *Switch) forward(from *port, frame []byte) {
	if to, known := s.where[string(frame[:macLen])]; known {
		if to != from {
			to.queue(frame)
		}
		return
	}
	for _, to := range s.ports {
		if to != from {
			to.queue(frame)
		}
	}
}

func (p *port) queue(frame []byte) {
	select {
	case p.out <- frame:
	default:
		p.counts.Overflow++
	}
}
