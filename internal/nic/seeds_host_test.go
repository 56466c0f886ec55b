package nic_test

import (
	"bytes"
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
)

// hostMem is a host's memory and what it must hold in the end. Every operation
// uses places of its own, so that each byte has one right value whatever the
// order; only counters are shared.
type hostMem struct {
	w      *world
	pd     *mr.PD
	region *mr.Region
	late   *devicetest.Late
	bytes  []byte
	want   []byte
	used   int
	sum    uint64 // of the shared counter at 0
	adds   []*faa
}

// faa is a FETCH_ADD of 1 on this host's counter: where its result lands.
type faa struct {
	to  *hostMem
	off int
}

const (
	hostMemSize = 1 << 20
	counterSize = 64
)

type ignore struct{}

func (ignore) MemoryDone(uint64, error) {}

func (w *world) newHost(i int) *hostMem {
	h := &hostMem{w: w, pd: w.fabric.NICs[i].AllocPD(), want: make([]byte, hostMemSize), used: counterSize}
	for k := counterSize; k < hostMemSize; k += 8 {
		binary.LittleEndian.PutUint64(h.want[k:], w.rng.Uint64())
	}
	var mem device.Memory
	if w.late {
		h.late = w.fabric.Late(devicetest.LateConfig{Size: hostMemSize, Seed: w.seed*8 + uint64(i), Prompt: 0.3})
		_, err := h.late.WriteV([]device.Vec{{B: h.want}}, 0, ignore{})
		require.NoError(w.t, err)
		h.late.Drain()
		mem = h.late
	} else {
		h.bytes = bytes.Clone(h.want)
		mem = host.New(h.bytes)
	}
	var err error
	h.region, err = h.pd.Register(mem, mr.Options{Access: nictest.AllAccess})
	require.NoError(w.t, err)
	return h
}

// take returns n fresh bytes, aligned to 8, with a gap behind them.
func (h *hostMem) take(n int) int {
	off := (h.used + 7) &^ 7
	h.used = off + n + 1
	require.LessOrEqual(h.w.t, h.used, hostMemSize)
	return off
}

func (h *hostMem) now() []byte {
	if h.late != nil {
		return h.late.Snapshot()
	}
	return h.bytes
}

// atomics checks that each FETCH_ADD on this host's counter saw another value, so
// that together they saw all of them.
func (h *hostMem) atomics() {
	seen := map[uint64]bool{}
	for _, a := range h.adds {
		v := binary.NativeEndian.Uint64(a.to.now()[a.off:])
		require.Less(h.w.t, v, h.sum)
		require.False(h.w.t, seen[v], "two FETCH_ADDs saw %d", v)
		seen[v] = true
		binary.NativeEndian.PutUint64(a.to.want[a.off:], v)
	}
	binary.NativeEndian.PutUint64(h.want, h.sum)
}

// verify compares every byte.
func (h *hostMem) verify() {
	got := h.now()
	if bytes.Equal(got, h.want) {
		return
	}
	for i := range got {
		require.Equal(h.w.t, h.want[i], got[i], "byte %d differs", i)
	}
}
