package xdp

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// pathState is what is known of the way to a destination.
type pathState uint32

const (
	pathIdle        pathState = iota // nobody asked, or what was known is void
	pathAsked                        // the kernel is being asked
	pathReady                        // the template is right
	pathKernel                       // not through our link: the kernel sends
	pathUnreachable                  // no route, or a neighbour that does not answer
)

// path is the way to a destination.
type path struct {
	dst  netip.Addr
	at   atomic.Uint32 // a pathState
	tmpl atomic.Pointer[template]
	used atomic.Bool // since the watcher last looked
	gone atomic.Bool // no longer in the table

	// The watcher's own.
	hop     netip.Addr // next hop, valid when the route leads through our link
	mtu     int        // of the route, 0 for the link's
	since   time.Time  // of the last question
	checked time.Time  // when the neighbour was last looked at
	unused  int        // looks that found it unused
}

func (p *path) state() pathState { return pathState(p.at.Load()) }

func (p *path) set(s pathState) { p.at.Store(uint32(s)) }

// maxPaths bounds the destinations that are known at a time.
const maxPaths = 1 << 14

// paths are the destinations of a Conn.
type paths struct {
	mu   sync.RWMutex
	all  map[netip.Addr]*path // guarded by mu
	todo []*path              // to be resolved; guarded by mu
	wake chan struct{}        // capacity 1: there is something to do
}

func newPaths() *paths {
	return &paths{all: make(map[netip.Addr]*path), wake: make(chan struct{}, 1)}
}

// get returns the path to a destination, or nil when there are too many.
func (t *paths) get(dst netip.Addr) *path {
	t.mu.RLock()
	p := t.all[dst]
	t.mu.RUnlock()
	if p != nil {
		return p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p = t.all[dst]; p == nil && len(t.all) < maxPaths {
		p = &path{dst: dst}
		t.all[dst] = p
	}
	return p
}

// ask has the watcher resolve an idle path, and reports whether it was idle.
func (t *paths) ask(p *path) bool {
	if !p.at.CompareAndSwap(uint32(pathIdle), uint32(pathAsked)) {
		return false
	}
	t.mu.Lock()
	t.todo = append(t.todo, p)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return true
}

// asked takes the paths to be resolved.
func (t *paths) asked() []*path {
	t.mu.Lock()
	defer t.mu.Unlock()
	todo := t.todo
	t.todo = nil
	return todo
}

// list returns all paths.
func (t *paths) list() []*path {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*path, 0, len(t.all))
	for _, p := range t.all {
		all = append(all, p)
	}
	return all
}

// forget drops a path that nobody used for long.
func (t *paths) forget(p *path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, p.dst)
	p.gone.Store(true)
}
