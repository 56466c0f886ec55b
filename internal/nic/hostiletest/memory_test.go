package hostiletest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
)

// memory is what the NIC can reach and what it must hold.
type memory struct {
	host *host.Memory
	late *devicetest.Late // instead of host
	want []byte
}

func (m *memory) device() device.Memory {
	if m.late != nil {
		return m.late
	}
	return m.host
}

func (m *memory) right() bool {
	if m.late != nil {
		return bytes.Equal(m.want, m.late.Snapshot())
	}
	return bytes.Equal(m.want, m.host.Bytes())
}

// region is a registered range, as the model knows it.
type region struct {
	name   string
	mem    *memory
	off    uint64
	size   uint64
	base   uint64
	access mr.Access
	pd     int
	rkey   uint32
	remote bool // the rkey is good
	real   *mr.Region
}

// at is the part of what the memory must hold.
func (r *region) at(off, n uint64) []byte { return r.mem.want[r.off+off : r.off+off+n] }

const (
	hostSize = 32 << 10
	lateSize = 8 << 10
	everyone = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic
)

// regionPlan is one region of every kind that a key can lead to.
var regionPlan = []region{
	{name: "open", off: 0, size: 8 << 10, base: 0x7F00_0000_1000, access: everyone},
	{name: "twin", off: 0, size: 4 << 10, base: 0x1000, access: mr.LocalWrite | mr.RemoteWrite}, // the same bytes, one right
	{name: "readable", off: 8 << 10, size: 2 << 10, base: 0xFFFF_F000, access: mr.LocalWrite | mr.RemoteRead},
	{name: "shut", off: 10 << 10, size: 2 << 10, base: 0x40_0000, access: mr.LocalWrite},
	{name: "foreign", off: 12 << 10, size: 2 << 10, base: 0x7F00_0000_4000, access: everyone, pd: 1},
	{name: "stale", off: 14 << 10, size: 1 << 10, base: 0x5000_0000, access: everyone},
	{name: "edge", off: 16 << 10, size: 2 << 10, base: math.MaxUint64 - 2<<10 - 7, access: everyone}, // ends at 2^64-8
	{name: "odd", off: 18<<10 + 3, size: 1021, base: 0x6000_0003, access: everyone},
	{name: "revocable", off: 20 << 10, size: 2 << 10, base: 0x7000_0000, access: everyone | mr.RemoteInvalidate},
	{name: "source", off: 24 << 10, size: 4 << 10, base: 0x10_0000},
	{name: "results", off: 28 << 10, size: 4 << 10, base: 0x20_0000, access: mr.LocalWrite},
	{name: "late", off: 0, size: 4 << 10, base: 0x8000_0000, access: everyone},
	{name: "late source", off: 4 << 10, size: 2 << 10, base: 0x9000_0000},
	{name: "late results", off: 6 << 10, size: 2 << 10, base: 0xA000_0000, access: mr.LocalWrite},
}

func (w *world) makeMemory() {
	h, err := host.Alloc(hostSize)
	require.NoError(w.t, err)
	w.host = &memory{host: h}
	w.late = &memory{late: devicetest.NewLate(devicetest.LateConfig{Size: lateSize, Seed: w.seed})}
	w.late.late.Step(w.link.now())
	for _, m := range []*memory{w.host, w.late} {
		m.want = make([]byte, m.device().Size())
		for i := range m.want {
			m.want[i] = byte(w.rng.Uint32())
		}
		done, err := m.device().WriteV([]device.Vec{{B: m.want}}, 0, forget{})
		require.NoError(w.t, err)
		if !done {
			m.late.Drain()
		}
	}
	w.byKey = map[uint32]*region{}
	w.named = map[string]*region{}
	w.pds = []*mr.PD{w.nic.AllocPD(), w.nic.AllocPD()}
	for _, plan := range regionPlan {
		r := plan
		r.mem = w.host
		if r.base >= 0x8000_0000 && r.base <= 0xA000_0000 {
			r.mem = w.late
		}
		w.named[r.name] = &r
		w.regions = append(w.regions, &r)
		w.register(&r)
	}
	w.revoke(w.named["stale"])
}

type forget struct{}

func (forget) MemoryDone(uint64, error) {}

func (w *world) register(r *region) {
	real, err := w.pds[r.pd].Register(r.mem.device(), mr.Options{Off: r.off, Len: r.size, Access: r.access, IOVA: &r.base})
	require.NoError(w.t, err)
	r.real, r.rkey, r.remote = real, real.RKey(), true
	w.byKey[r.rkey] = r
}

// revoke deregisters; the key stays known, as one that leads nowhere.
func (w *world) revoke(r *region) {
	require.Zero(w.t, r.real.Lent(), "%s: spans still lent", r.name)
	require.NoError(w.t, r.real.Deregister(context.Background()))
	r.remote, r.real = false, nil
}

// renew makes a region that was revoked or invalidated again, with a new key.
func (w *world) renew(r *region) {
	if r.real != nil {
		w.revoke(r)
	}
	delete(w.byKey, r.rkey)
	w.register(r)
}

// reach resolves a remote key by §6. Nothing is added before it was compared.
func (w *world) reach(pd int, rkey uint32, va, n uint64, need mr.Access) (*region, uint64, bool) {
	r := w.byKey[rkey]
	if r == nil || !r.remote || r.pd != pd || r.access&need != need {
		return nil, 0, false
	}
	end, wraps := bits.Add64(va, n, 0)
	if wraps != 0 || va < r.base || end > r.base+r.size {
		return nil, 0, false
	}
	return r, va - r.base, true
}

// word is the 64-bit number at an offset of what a region must hold.
func (r *region) word(off uint64) uint64 { return binary.NativeEndian.Uint64(r.at(off, 8)) }

func (r *region) setWord(off, v uint64) { binary.NativeEndian.PutUint64(r.at(off, 8), v) }
