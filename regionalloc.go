package hixl

import (
	"context"
	"math/bits"
	"sync"

	"github.com/gohixl/hixl/device/host"
)

// Classes of sizes that [Context.Alloc] maps: powers of two and their three
// quarters, from smallestClass up. What exceeds largestClass is mapped as it is.
const (
	smallestClass = 4 << 10
	largestClass  = 1 << 30
	// keepPages bounds the memory that is kept for later, in bytes.
	keepPages = 256 << 20
)

// sizeClass returns the least class that holds size bytes.
func sizeClass(size int) int {
	switch {
	case size <= smallestClass:
		return smallestClass
	case size > largestClass:
		return size
	}
	power := 1 << bits.Len(uint(size-1))
	if threeQuarters := power - power/4; size <= threeQuarters {
		return threeQuarters
	}
	return power
}

// pagePool keeps memory of regions that are gone for others.
type pagePool struct {
	mu     sync.Mutex
	free   map[int][]*host.Memory // guarded by mu, by class
	kept   int                    // guarded by mu, bytes
	closed bool                   // guarded by mu
}

// get returns zeroed memory for size bytes.
func (p *pagePool) get(size int) (*host.Memory, error) {
	class := sizeClass(size)
	p.mu.Lock()
	if list := p.free[class]; len(list) > 0 {
		m := list[len(list)-1]
		p.free[class] = list[:len(list)-1]
		p.kept -= class
		p.mu.Unlock()
		clear(m.Bytes())
		return m, nil
	}
	p.mu.Unlock()
	if size < 1 {
		return host.Alloc(size) // which says what is wrong
	}
	return host.Alloc(class)
}

// put takes memory back.
func (p *pagePool) put(m *host.Memory) error {
	class := int(m.Size())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || class > largestClass || p.kept+class > keepPages {
		return m.Close()
	}
	if p.free == nil {
		p.free = make(map[int][]*host.Memory)
	}
	p.free[class] = append(p.free[class], m)
	p.kept += class
	return nil
}

func (p *pagePool) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, list := range p.free {
		for _, m := range list {
			if e := m.Close(); e != nil && err == nil {
				err = e
			}
		}
	}
	p.free, p.kept = nil, 0
	return err
}

// Alloc returns size bytes of zeroed, page-aligned memory outside the Go heap,
// registered. Deregister gives it back: its keys are revoked for good, its pages
// serve a later Alloc of about the same size. For the error see [PD.Alloc].
func (c *Context) Alloc(size int, access Access) (*Region, error) {
	m, err := c.pages.get(size)
	if err != nil {
		return nil, err
	}
	r, err := c.pd.RegisterMemory(m, MemoryOptions{Len: uint64(size), Access: access})
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	r.owned, r.pool = m, &c.pages
	if !c.nic.own(r) {
		_ = r.Deregister(context.Background())
		return nil, ErrClosed
	}
	return r, nil
}
