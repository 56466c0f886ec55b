package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/engine"
)

// What HIXL's users rely on, point by point: memory, transfers, notifications.

// HIXL's remote regions must be registered before the connection; here later ones
// are found as well, and those that are gone are not.
func TestRegisterAfterConnect(t *testing.T) {
	a, b, remote := pair(t, "127.97.5", nil)
	here, _ := register(t, a, 4096)
	write := func(to []byte) error {
		return a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(to))})
	}
	for i := range 3 {
		there := mapMemory(t, 4096)
		require.ErrorIs(t, write(there), engine.ErrParamInvalid, "not registered yet")
		h, err := b.RegisterMem(engine.MemDesc{Addr: addr(there), Len: 4096}, engine.MemHost)
		require.NoError(t, err)
		fillPattern(here, i)
		require.NoError(t, write(there))
		require.Equal(t, here, there)
		require.NoError(t, b.DeregisterMem(soon(t), h))
		require.Eventually(t, func() bool { return !a.Knows(remote, addr(there)) }, engine.Patience, time.Millisecond, "it is told")
		require.ErrorIs(t, write(there), engine.ErrParamInvalid, "not registered any more")
	}
}

// A transfer may use any part of a region, but of one.
func TestAnySubRange(t *testing.T) {
	a, b, remote := pair(t, "127.97.6", nil)
	here, _ := register(t, a, 1<<16)
	there, _ := register(t, b, 1<<16)
	fillPattern(here, 3)
	var list []engine.TransferOpDesc
	for i := range 500 {
		at := i * 131
		list = append(list, piece(here[at:at+100], addr(there[1<<16-at-100:])))
	}
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
	for i := range 500 {
		at := i * 131
		require.Equal(t, here[at:at+100], there[1<<16-at-100:1<<16-at])
	}
	back, _ := register(t, a, 1<<16)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{piece(back, addr(there))}))
	require.Equal(t, there, back)
	beyond := piece(here, addr(there)+1)
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{beyond}), engine.ErrParamInvalid)
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{{LocalAddr: addr(here) + 1, RemoteAddr: addr(there), Len: 1 << 16}}), engine.ErrParamInvalid)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list[:1]), "nothing is broken")
}

// The same memory registered twice has one handle, and is deregistered once.
func TestRegisterTwice(t *testing.T) {
	e := start(t, "127.97.7.1", nil)
	b := make([]byte, 4096)
	h, err := e.RegisterMem(engine.MemDesc{Bytes: b}, engine.MemHost)
	require.NoError(t, err)
	again, err := e.RegisterMem(engine.MemDesc{Bytes: b}, engine.MemHost)
	require.NoError(t, err)
	require.Same(t, h, again)
	require.Equal(t, addr(b), h.Addr())
	require.EqualValues(t, 4096, h.Len())
	part, err := e.RegisterMem(engine.MemDesc{Bytes: b[:100]}, engine.MemHost)
	require.NoError(t, err)
	require.NotSame(t, h, part)
	require.NoError(t, e.DeregisterMem(soon(t), h))
	require.NoError(t, e.DeregisterMem(soon(t), h), "twice is fine")
	fresh, err := e.RegisterMem(engine.MemDesc{Bytes: b}, engine.MemHost)
	require.NoError(t, err)
	require.NotSame(t, h, fresh)
}

// Nothing where something must be is an invalid parameter.
func TestNilIsParamInvalid(t *testing.T) {
	a, _, remote := pair(t, "127.97.8", nil)
	other := start(t, "127.97.8.3", nil)
	_, foreign := register(t, other, 4096)
	b := mapMemory(t, 8192)
	for name, m := range map[string]engine.MemDesc{
		"nothing": {}, "no length": {Addr: addr(b)}, "no address": {Len: 5}, "no bytes": {Bytes: []byte{}},
		"both": {Bytes: b, Addr: addr(b), Len: 5}, "not mapped": {Addr: 4096, Len: 4096}, "wraps": {Addr: ^uintptr(0) - 5, Len: 100},
		"too long": {Addr: addr(b), Len: 1 << 63}, "partly mapped": {Addr: addr(b), Len: 1 << 46},
	} {
		_, err := a.RegisterMem(m, engine.MemHost)
		require.ErrorIs(t, err, engine.ErrParamInvalid, name)
	}
	_, err := a.RegisterMem(engine.MemDesc{Bytes: b}, 7)
	require.ErrorIs(t, err, engine.ErrParamInvalid)
	_, err = a.RegisterMem(engine.MemDesc{Bytes: b}, engine.MemDevice)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.ErrorIs(t, a.DeregisterMem(soon(t), nil), engine.ErrParamInvalid)
	require.ErrorIs(t, a.DeregisterMem(soon(t), foreign), engine.ErrParamInvalid)
	for name, list := range map[string][]engine.TransferOpDesc{
		"no pieces": nil, "empty": {{LocalAddr: addr(b), RemoteAddr: 1}}, "no local": {{RemoteAddr: 1, Len: 1}}, "no remote": {{Local: b}},
		"both": {{Local: b, LocalAddr: addr(b), RemoteAddr: 1}}, "wraps": {{LocalAddr: addr(b), RemoteAddr: ^uintptr(0), Len: 2}},
	} {
		require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Read, list), engine.ErrParamInvalid, name)
		_, err := a.TransferAsync(remote, engine.Read, list, engine.TransferArgs{})
		require.ErrorIs(t, err, engine.ErrParamInvalid, name)
	}
	require.ErrorIs(t, a.TransferSync(soon(t), remote, 2, []engine.TransferOpDesc{{Local: b, RemoteAddr: 1}}), engine.ErrParamInvalid)
	_, err = a.GetTransferStatus(0)
	require.ErrorIs(t, err, engine.ErrParamInvalid)
	require.ErrorIs(t, a.ConnectAsync(remote, -1), engine.ErrParamInvalid)
	_, err = engine.GetCapability(9)
	require.ErrorIs(t, err, engine.ErrParamInvalid)
}

// 4096 regions, which HIXL suggests as the most, are no load.
func TestFourThousandRegions(t *testing.T) {
	a, b, remote := pair(t, "127.97.9", nil)
	here, _ := register(t, a, 64)
	there := mapMemory(t, 4096*64)
	for i := range 4096 {
		_, err := b.RegisterMem(engine.MemDesc{Addr: addr(there[i*64:]), Len: 64}, engine.MemHost)
		require.NoError(t, err)
	}
	for i := 0; i < 4096; i += 409 {
		fillPattern(here, i)
		require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(there[i*64:]))}))
		require.Equal(t, here, there[i*64:i*64+64])
	}
	b.Finalize() // before the memory goes
}

// The end of an asynchronous transfer is told once.
func TestTerminalResultIsConsumed(t *testing.T) {
	a, b, remote := pair(t, "127.97.13", nil)
	here, _ := register(t, a, 1<<20)
	there, _ := register(t, b, 1<<20)
	fillPattern(here, 5)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	req, err := a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.NoError(t, err)
	s, err := end(t, a, req)
	require.NoError(t, err)
	require.Equal(t, engine.TransferCompleted, s)
	require.Equal(t, here, there)
	_, err = a.GetTransferStatus(req)
	require.ErrorIs(t, err, engine.ErrParamInvalid)

	var reqs []engine.TransferReq
	for i := range 5 {
		req, err := a.TransferAsync(remote, engine.Read, list, engine.TransferArgs{UserData: i})
		require.NoError(t, err)
		reqs = append(reqs, req)
	}
	var got []engine.TransferResult
	for len(got) < 5 {
		some, err := a.GetTransferStatuses(engine.GetTransferStatusArgs{MaxQueryCount: 2, SkipWaiting: true})
		require.NoError(t, err)
		require.LessOrEqual(t, len(some), 2)
		got = append(got, some...)
	}
	seen := map[engine.TransferReq]any{}
	for _, r := range got {
		require.NoError(t, r.Err)
		require.Equal(t, engine.TransferCompleted, r.Status)
		seen[r.Req] = r.UserData
	}
	for i, req := range reqs {
		require.Equal(t, i, seen[req])
	}
	none, err := a.GetTransferStatuses(engine.GetTransferStatusArgs{})
	require.NoError(t, err)
	require.Empty(t, none)
}

// Local memory that is not registered goes through the buffer pool, in any mix of
// pieces; HIXL wants one kind of memory for all.
func TestRelay(t *testing.T) {
	a, b, remote := pair(t, "127.97.14", map[string]string{engine.OptionBufferPool: "2:1"})
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4<<20)
	fillPattern(here, 1)
	loose := make([]byte, 3<<20-5)
	fillPattern(loose, 2)
	list := []engine.TransferOpDesc{piece(here, addr(there)), {Local: loose, RemoteAddr: addr(there[4096:])}}
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
	require.Equal(t, here, there[:4096])
	require.Equal(t, loose, there[4096:4096+len(loose)])
	back := make([]byte, len(loose))
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{{Local: back, RemoteAddr: addr(there[4096:])}}))
	require.Equal(t, loose, back)
	_, err := a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.ErrorIs(t, err, engine.ErrParamInvalid, "asynchronous transfers have no relay")
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{{LocalAddr: addr(there), RemoteAddr: addr(there), Len: 8}}),
		engine.ErrParamInvalid, "an address says nothing of who owns it")

	off := start(t, "127.97.14.3", map[string]string{engine.OptionBufferPool: "0:0"})
	require.NoError(t, off.Connect(soon(t), remote))
	require.ErrorIs(t, off.TransferSync(soon(t), remote, engine.Write, list[1:]), engine.ErrParamInvalid)
	reg := make([]byte, 64)
	_, err = off.RegisterMem(engine.MemDesc{Bytes: reg}, engine.MemHost)
	require.NoError(t, err)
	require.NoError(t, off.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{{Local: reg[8:], RemoteAddr: addr(there)}}), "registered")
}

// Remote memory that is not registered is not reached by relay: its owner has not
// opened it.
func TestUnregisteredRemoteIsRefused(t *testing.T) {
	a, _, remote := pair(t, "127.97.15", nil)
	closed := mapMemory(t, 4096)
	err := a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{{Local: make([]byte, 8), RemoteAddr: addr(closed)}})
	require.ErrorIs(t, err, engine.ErrParamInvalid)
	require.ErrorContains(t, err, "no region registered there")
	s, err := a.GetAsyncConnectStatus(remote)
	require.NoError(t, err)
	require.Equal(t, engine.Connected, s, "the link is sound")
}

// Names and messages have up to 1024 bytes; all that have come are taken at once.
func TestNotify(t *testing.T) {
	a, b, remote := pair(t, "127.97.16", nil)
	long := strings.Repeat("n", engine.MaxNotify)
	sent := []engine.NotifyDesc{{Name: "first", Msg: "1"}, {Name: long, Msg: long}, {}, {Name: "bytes", Msg: "\x00\xff"}}
	for _, n := range sent {
		require.NoError(t, a.SendNotify(soon(t), remote, n))
	}
	require.Equal(t, sent, notifies(t, b, len(sent)))
	require.ErrorIs(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: long + "n"}), engine.ErrParamInvalid)
	require.ErrorIs(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Msg: long + "n"}), engine.ErrParamInvalid)
	none, err := b.GetNotifies()
	require.NoError(t, err)
	require.Empty(t, none)

	// What a client has told is there after it has left.
	require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "last"}))
	require.NoError(t, a.Disconnect(soon(t), remote))
	require.Equal(t, "last", notifies(t, b, 1)[0].Name)
}

// 4096 notifications of a link wait; then there is no room until some are taken.
func TestNotifyQueueIsBounded(t *testing.T) {
	a, b, remote := pair(t, "127.97.17", nil)
	for i := range 4096 {
		require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: fmt.Sprint(i)}))
	}
	require.ErrorIs(t, a.SendNotify(within(t, time.Second), remote, engine.NotifyDesc{Name: "4096"}), engine.ErrResourceExhausted)
	for i, n := range notifies(t, b, 4096) {
		require.Equal(t, fmt.Sprint(i), n.Name)
	}
	require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "4096"}), "the link is sound")
	require.Equal(t, "4096", notifies(t, b, 1)[0].Name)
}

// HIXL orders notifications only behind transfers that are over; here behind all
// that were begun, and one can be bound to a transfer.
func TestNotifyAfterData(t *testing.T) {
	a, b, remote := pair(t, "127.97.18", nil)
	here, _ := register(t, a, 1<<20)
	there := make([]byte, 1<<20) // Go's: the race detector sees what the notification orders
	_, err := b.RegisterMem(engine.MemDesc{Bytes: there}, engine.MemHost)
	require.NoError(t, err)
	list := []engine.TransferOpDesc{piece(here[:1<<19], addr(there)), piece(here[1<<19:], addr(there[1<<19:]))}
	for i := range 10 {
		fillPattern(here, i)
		args := engine.TransferArgs{}
		if i%2 == 0 {
			args.Notify = &engine.NotifyDesc{Name: "done", Msg: fmt.Sprint(i)}
		}
		req, err := a.TransferAsync(remote, engine.Write, list, args)
		require.NoError(t, err)
		if i%2 != 0 {
			require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "done", Msg: fmt.Sprint(i)}))
		}
		require.Equal(t, []engine.NotifyDesc{{Name: "done", Msg: fmt.Sprint(i)}}, notifies(t, b, 1))
		require.Equal(t, here, there)
		s, err := end(t, a, req)
		require.NoError(t, err)
		require.Equal(t, engine.TransferCompleted, s)
	}
	_, err = a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{Notify: &engine.NotifyDesc{Name: strings.Repeat("n", 1025)}})
	require.ErrorIs(t, err, engine.ErrParamInvalid)
}
