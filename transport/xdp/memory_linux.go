package xdp

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Sizes of chunks, the pieces of the rings' memory.
const (
	smallChunk = 2048
	largeChunk = 4096 // the kernel takes none that are larger than a page
	// txBytes bounds the memory for sent frames of a queue.
	txBytes = 16 << 20
)

// layout is how the rings' memory is cut: for each queue chunks for what arrives
// and behind them slots for what leaves. A slot is as many chunks as the longest
// frame needs.
type layout struct {
	chunk  int
	rx     int // chunks
	tx     int // slots
	slot   int // bytes
	queues int
}

func layoutFor(mtu, queues, rx, tx int) layout {
	l := layout{chunk: smallChunk, rx: rx, tx: tx, queues: queues}
	if mtu+etherLen+2*tagLen > smallChunk-unix.XDP_PACKET_HEADROOM {
		l.chunk = largeChunk
	}
	l.slot = (headroom + mtu + l.chunk - 1) / l.chunk * l.chunk
	for l.tx > MinFrames && l.tx*l.slot > txBytes {
		l.tx /= 2
	}
	return l
}

// descs is the number of descriptors that the longest frame takes.
func (l *layout) descs() int { return l.slot / l.chunk }

// perQueue is the bytes of one queue.
func (l *layout) perQueue() int { return l.rx*l.chunk + l.tx*l.slot }

func (l *layout) size() int { return l.queues * l.perQueue() }

// memory is what the rings' descriptors point into. It is mapped until the Conn
// has closed and everything lent has come back.
type memory struct {
	layout
	buf []byte

	lent   atomic.Int64
	mu     sync.Mutex
	closed bool // guarded by mu, as the mapping
}

func newMemory(l layout) (*memory, error) {
	buf, err := unix.Mmap(-1, 0, l.size(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	return &memory{layout: l, buf: buf}, nil
}

// lend counts n pieces that go out, or come back when n is negative.
func (m *memory) lend(n int) {
	if m.lent.Add(int64(n)) == 0 && n < 0 {
		m.unmap()
	}
}

// close lets the mapping go once nothing is lent.
func (m *memory) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.unmap()
}

func (m *memory) unmap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed && m.buf != nil && m.lent.Load() == 0 {
		_ = unix.Munmap(m.buf)
		m.buf = nil
	}
}

// linear lends buffers for packets that did not come in one piece, and for those
// that came by the kernel's socket. They are the Go heap's.
type linear struct {
	mu    sync.Mutex
	size  [2]int       // of the buffers of each class
	all   []linearBuf  // by number
	spare [2][]uint32  // numbers, by class
	lent  atomic.Int64 //
}

type linearBuf struct {
	b     []byte
	class uint8
	out   bool
}

// maxLinear bounds the buffers.
const maxLinear = 1024

// get returns a buffer of at least n bytes and its number, or nil when there are
// too many or n is more than any packet.
func (l *linear) get(n int) ([]byte, uint32) {
	class := 0
	if n > l.size[0] {
		class = 1
	}
	if n > l.size[class] {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var number uint32
	switch k := len(l.spare[class]); {
	case k > 0:
		number = l.spare[class][k-1]
		l.spare[class] = l.spare[class][:k-1]
	case len(l.all) == maxLinear:
		return nil, 0
	default:
		number = uint32(len(l.all))
		l.all = append(l.all, linearBuf{b: make([]byte, l.size[class]), class: uint8(class)})
	}
	l.all[number].out = true
	l.lent.Add(1)
	return l.all[number].b, number
}

func (l *linear) put(number uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(number) >= len(l.all) || !l.all[number].out {
		return
	}
	b := &l.all[number]
	b.out = false
	l.spare[b.class] = append(l.spare[b.class], number)
	l.lent.Add(-1)
}

// is reports whether b is the buffer of that number.
func (l *linear) is(number uint32, b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(number) < len(l.all) && &l.all[number].b[0] == &b[0]
}
