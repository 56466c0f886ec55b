package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gohixl/hixl"
)

// An engine tells others which memory it has registered by a directory: a region
// that is only ever appended to, so that it can be read while it grows. Its first
// word counts the entries; the rest, from dirHead on, are entries of dirEntry bytes.
// Who knows the first n reads the word, atomically, and then what is new. When it is
// full, a new one with what is still registered takes over its name.
const (
	dirName  = "hixl.engine.directory"
	dirHead  = 64
	dirEntry = 32
	// MaxRegions is how many regions an engine can have registered.
	MaxRegions = 1 << 15
	dirEntries = 2 * MaxRegions
)

// regionName is under which name a region is published.
func regionName(id uint64) string { return fmt.Sprintf("hixl.engine.region.%d", id) }

// The kinds of entries.
const (
	entryAdded   = 1
	entryRemoved = 2
)

// entry is one change of what is registered: kind, id, address and length, 8 bytes
// each, little endian.
type entry struct {
	kind, id uint64
	span
}

func (x *entry) encode(b []byte) {
	binary.LittleEndian.PutUint64(b, x.kind)
	binary.LittleEndian.PutUint64(b[8:], x.id)
	binary.LittleEndian.PutUint64(b[16:], x.addr)
	binary.LittleEndian.PutUint64(b[24:], x.n)
}

// decodeEntry reads what a peer has written; nothing of it is trusted.
func decodeEntry(b []byte) (x entry, err error) {
	x.kind, x.id = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	x.addr, x.n = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	if x.kind != entryAdded && x.kind != entryRemoved || x.addr+x.n < x.addr || x.n == 0 {
		return x, fmt.Errorf("an entry of kind %d, %d bytes at %#x", x.kind, x.n, x.addr)
	}
	return x, nil
}

// directory is this engine's.
type directory struct {
	c *hixl.Context

	mu      sync.Mutex
	log     *hixl.Region // guarded by mu, as all below
	retired []*hixl.Region
	n       int // entries in log
	live    map[uint64]span
	ids     uint64
	entries int // that a log holds
	closed  bool
}

// open publishes an empty directory.
func (d *directory) open(c *hixl.Context, entries int) error {
	d.c, d.live, d.entries = c, make(map[uint64]span), entries
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.renew()
}

// renew begins a new log. The one before the last is given up: who still reads it
// would have begun before half a log of changes. d.mu is held.
func (d *directory) renew() error {
	log, err := d.c.Alloc(dirHead+dirEntry*d.entries, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteAtomic)
	if err != nil {
		return err
	}
	d.retired = slices.DeleteFunc(d.retired, func(r *hixl.Region) bool { return r.Deregister(ended) == nil }) // else somebody reads it still
	if d.log != nil {
		d.retired = append(d.retired, d.log)
	}
	d.log, d.n = log, 0
	for id, x := range d.live {
		d.append(&entry{kind: entryAdded, id: id, span: x})
	}
	return d.c.Publish(dirName, log)
}

// append adds an entry, for which there is room. d.mu is held.
func (d *directory) append(x *entry) {
	b := d.log.Bytes()
	x.encode(b[dirHead+d.n*dirEntry:])
	d.n++
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), uint64(d.n))
}

// note adds an entry.
func (d *directory) note(x *entry) error {
	if d.n == d.entries {
		if err := d.renew(); err != nil {
			return err
		}
	}
	d.append(x)
	return nil
}

// add makes a region known, and returns its id.
func (d *directory) add(r *hixl.Region, x span) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, errFinalized
	}
	if len(d.live) >= d.entries/2 {
		return 0, fault(StatusResourceExhausted, "%d regions are registered, allowed: up to %d", len(d.live), d.entries/2)
	}
	d.ids++
	id := d.ids
	if err := d.c.Publish(regionName(id), r); err != nil {
		return 0, err
	}
	if err := d.note(&entry{kind: entryAdded, id: id, span: x}); err != nil {
		d.c.Unpublish(regionName(id))
		return 0, err
	}
	d.live[id] = x
	return id, nil
}

// remove makes a region unknown to those who ask. Its deregistration, which follows,
// takes its name away and tells those who know it.
func (d *directory) remove(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.live[id]
	if !ok || d.closed {
		return
	}
	delete(d.live, id)
	_ = d.note(&entry{kind: entryRemoved, id: id, span: x}) // without it a peer learns when it looks the region up
}

// close ends the directory, whose memory goes with the NIC.
func (d *directory) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// ended is a context that has: it makes polls of calls that wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
