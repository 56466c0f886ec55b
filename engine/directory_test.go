package engine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/engine"
)

// A directory that is full is renewed, and those who read the old one go on.
func TestDirectoryIsRenewed(t *testing.T) {
	remote := "127.97.31.2" + port
	b := start(t, remote, nil)
	require.NoError(t, b.ShrinkDirectory(16))
	a := start(t, "127.97.31.1", nil)
	require.NoError(t, a.Connect(soon(t), remote))
	here, _ := register(t, a, 64)
	keep, _ := register(t, b, 64)
	mem := mapMemory(t, 64*64)
	for i := range 64 {
		there := mem[i*64:][:64]
		h, err := b.RegisterMem(engine.MemDesc{Addr: addr(there), Len: 64}, engine.MemHost)
		require.NoError(t, err)
		for _, to := range [][]byte{there, keep} {
			fillPattern(here, i)
			require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(to))}))
			require.Equal(t, here, to)
		}
		require.NoError(t, b.DeregisterMem(soon(t), h))
	}
	for i := range 7 {
		_, err := b.RegisterMem(engine.MemDesc{Addr: addr(mem[i*64:]), Len: 64}, engine.MemHost)
		require.NoError(t, err)
	}
	_, err := b.RegisterMem(engine.MemDesc{Addr: addr(mem[7*64:]), Len: 64}, engine.MemHost)
	require.ErrorIs(t, err, engine.ErrResourceExhausted, "half of it is the most")
	b.Finalize()
}

// What a remote engine says of its memory is not trusted.
func TestHostileDirectory(t *testing.T) {
	remote := "127.97.32.2" + port
	b := start(t, remote, nil)
	a := start(t, "127.97.32.1", nil)
	forge := func(size int, words ...uint64) error {
		dir := mapMemory(t, max(size, 64)+4096)[:size]
		for i, w := range words {
			at := 0
			if i > 0 {
				at = 64 + 8*(i-1)
			}
			binary.LittleEndian.PutUint64(dir[at:], w)
		}
		require.NoError(t, b.ForgeDirectory(dir))
		return a.Connect(soon(t), remote)
	}
	for name, err := range map[string]error{
		"no head":      forge(8),
		"too many":     forge(64+32, 2),
		"far too many": forge(64+32, 1<<63),
		"no kind":      forge(64+32, 1, 3, 1, 4096, 64),
		"wraps":        forge(64+32, 1, 1, 1, 1<<63, 1<<63+1),
		"empty":        forge(64+32, 1, 1, 1, 4096, 0),
	} {
		require.ErrorIs(t, err, engine.ErrFailed, name)
	}
	require.NoError(t, forge(64+64, 2, 1, 1<<40, 4096, 64, 2, 5, 6, 7), "a region that is not there, and one removed that never was")
	err := a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{{Local: make([]byte, 8), RemoteAddr: 4096}})
	require.ErrorIs(t, err, engine.ErrParamInvalid)
	b.Finalize()
}

// A peer that is a context but no engine is told from one.
func TestPeerIsNoEngine(t *testing.T) {
	plain, err := hixl.Open(hixl.Config{Address: netipAddr("127.97.33.2")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Close()) })
	_, err = plain.Listen(soon(t), port)
	require.NoError(t, err)
	a := start(t, "127.97.33.1", nil)
	err = a.Connect(soon(t), "127.97.33.2"+port)
	require.ErrorContains(t, err, "no engine")
	require.ErrorIs(t, err, hixl.ErrNoRegion)
}

// Links whose makers have left are forgotten.
func TestGuestsLeave(t *testing.T) {
	remote := "127.97.34.2" + port
	b := start(t, remote, nil)
	a := start(t, "127.97.34.1", nil)
	for range 20 {
		require.NoError(t, a.Connect(soon(t), remote))
		require.NoError(t, a.Disconnect(soon(t), remote))
	}
	require.Eventually(t, func() bool { return b.Guests() == 0 }, engine.Patience, time.Millisecond)
	require.Zero(t, b.Context().Stats().Peers)
}
