package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/engine"
)

// Device memory is reached as Config.Device says.
func TestDeviceMemory(t *testing.T) {
	remote := "127.97.35.2" + port
	card := mapMemory(t, 1<<16) // its own addresses begin at 1<<40
	const base = 1 << 40
	b := startWith(t, engine.Config{LocalEngine: remote, Device: func(m engine.MemDesc) (hixl.Memory, error) {
		if m.Addr < base || m.Addr-base > 1<<16 {
			return nil, errors.New("no address of the card")
		}
		return host.New(card[m.Addr-base:][:min(m.Len, 1<<15)]), nil
	}})
	_, err := b.RegisterMem(engine.MemDesc{Addr: base + 4096, Len: 8192}, engine.MemDevice)
	require.NoError(t, err)
	_, err = b.RegisterMem(engine.MemDesc{Addr: 77, Len: 8192}, engine.MemDevice)
	require.ErrorIs(t, err, engine.ErrFailed)
	_, err = b.RegisterMem(engine.MemDesc{Addr: base, Len: 1 << 16}, engine.MemDevice)
	require.ErrorIs(t, err, engine.ErrParamInvalid, "memory of another length")
	a := start(t, "127.97.35.1", nil)
	require.NoError(t, a.Connect(soon(t), remote))
	here, _ := register(t, a, 100)
	fillPattern(here, 4)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here, base+4096+50)}))
	require.Equal(t, here, card[4096+50:4096+150])
	b.Finalize() // before its memory goes
}
