package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device"
)

// HostMemory is the kind of memory that every build has.
const HostMemory = "host"

// MemorySource gives memory of a kind, such as a device's. It is closed after all
// that it gave.
type MemorySource interface {
	// Alloc returns size bytes and what gives them back.
	Alloc(size int) (device.Memory, func() error, error)
	// Describe says what it is, for the report.
	Describe() string
	Close() error
}

// kinds are the kinds of memory beside the host's, by name.
var kinds = struct {
	mu   sync.Mutex
	open map[string]func() (MemorySource, error)
}{open: make(map[string]func() (MemorySource, error))}

// AddMemory makes a kind of memory known under a name, for both sides of a run in
// this process.
func AddMemory(name string, open func() (MemorySource, error)) {
	kinds.mu.Lock()
	defer kinds.mu.Unlock()
	kinds.open[name] = open
}

// MemoryKinds lists the names, the host's first.
func MemoryKinds() []string {
	kinds.mu.Lock()
	defer kinds.mu.Unlock()
	var names []string
	for name := range kinds.open {
		names = append(names, name)
	}
	slices.Sort(names)
	return append([]string{HostMemory}, names...)
}

// checkMemory refuses a kind that this program does not have.
func checkMemory(flag, kind string) error {
	if kind == "" || slices.Contains(MemoryKinds(), kind) {
		return nil
	}
	return &FlagError{
		Flag: flag, Given: fmt.Sprintf("%q", kind), Allowed: strings.Join(MemoryKinds(), ", "),
		Do: "take one of these; a program built with -tags ascend has ascend as well",
	}
}

// openMemory opens the source of a kind; nil is the host's.
func openMemory(kind string) (MemorySource, error) {
	if kind == "" || kind == HostMemory {
		return nil, nil
	}
	kinds.mu.Lock()
	open := kinds.open[kind]
	kinds.mu.Unlock()
	if open == nil {
		return nil, fmt.Errorf("memory %.20q: this side has %s", kind, strings.Join(MemoryKinds(), ", "))
	}
	return open()
}

// buffer is a registered region whose content the benchmark writes and looks at.
// Where the CPU cannot address it, that is a copy: push moves it to the region, pull
// moves the region to it.
type buffer struct {
	*hixl.Region
	copied []byte        // nil for host memory
	mem    device.Memory // likewise
	free   func() error
}

const access = hixl.LocalWrite | hixl.RemoteWrite | hixl.RemoteRead | hixl.RemoteAtomic

// newBuffer registers size bytes of host memory, or of the source's.
func newBuffer(pd *hixl.PD, src MemorySource, size int) (*buffer, error) {
	if src == nil {
		r, err := pd.Alloc(size, access)
		return &buffer{Region: r}, err
	}
	mem, free, err := src.Alloc(size)
	if err != nil {
		return nil, err
	}
	r, err := pd.RegisterMemory(mem, hixl.MemoryOptions{Access: access})
	if err != nil {
		return nil, errors.Join(err, free())
	}
	return &buffer{Region: r, copied: make([]byte, size), mem: mem, free: free}, nil
}

// Bytes is the content that push moves and pull has moved.
func (b *buffer) Bytes() []byte {
	if b.mem == nil {
		return b.Region.Bytes()
	}
	return b.copied
}

// pushPiece bounds one blocking copy.
const pushPiece = 256 << 10

// push makes the region hold Bytes.
func (b *buffer) push() error { return b.move(device.WriteAt) }

// pull makes Bytes what the region holds.
func (b *buffer) pull() error { return b.move(device.ReadAt) }

func (b *buffer) move(do func(device.Memory, []byte, uint64) error) error {
	for off := 0; b.mem != nil && off < len(b.copied); off += pushPiece {
		end := min(off+pushPiece, len(b.copied))
		if err := do(b.mem, b.copied[off:end], uint64(off)); err != nil {
			return err
		}
	}
	return nil
}

// word reads the 64-bit word at off from the region.
func (b *buffer) word(off int) (uint64, error) {
	if b.mem == nil {
		return binary.NativeEndian.Uint64(b.Region.Bytes()[off:]), nil
	}
	w := b.copied[off : off+8]
	err := device.ReadAt(b.mem, w, uint64(off))
	return binary.NativeEndian.Uint64(w), err
}
