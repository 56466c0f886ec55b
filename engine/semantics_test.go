package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/engine"
)

// What HIXL's users rely on, point by point: links. Memory, transfers and
// notifications are in semanticsmemory_test.go.

// A local engine with a port listens, one without only connects.
func TestLocalEngineWithPortListens(t *testing.T) {
	server := start(t, "127.97.1.1"+port, nil)
	for _, name := range []string{"127.97.1.2", "127.97.1.3:0"} {
		client := start(t, name, nil)
		require.NoError(t, client.Connect(soon(t), "127.97.1.1"+port), name)
		require.NoError(t, client.Disconnect(soon(t), "127.97.1.1"+port), name)
	}
	err := server.Connect(soon(t), "127.97.1.2"+port)
	require.ErrorIs(t, err, engine.ErrFailed, "nobody listens there")
	require.ErrorIs(t, err, hixl.ErrRejected)
	for _, bad := range []string{"", "engine", "127.97.1.4:x", "127.97.1.4:70000", "[::1]", "0.0.0.0:1", "224.0.0.1:1", "::1:5:x"} {
		_, err := engine.Initialize(bad, nil)
		require.ErrorIs(t, err, engine.ErrParamInvalid, bad)
	}
	_, err = engine.Initialize("192.0.2.1:5", nil)
	require.ErrorIs(t, err, engine.ErrFailed, "not an address of this host")
}

// The link is the client's: the server cannot transfer over it.
func TestConnectIsTheClients(t *testing.T) {
	b := start(t, "127.97.2.2"+port, nil)
	a := start(t, "127.97.2.1"+port, nil)
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	require.NoError(t, a.Connect(soon(t), "127.97.2.2"+port))
	require.NoError(t, a.TransferSync(soon(t), "127.97.2.2"+port, engine.Write, []engine.TransferOpDesc{piece(here, addr(there))}))
	back := []engine.TransferOpDesc{piece(there, addr(here))}
	require.ErrorIs(t, b.TransferSync(soon(t), "127.97.2.1"+port, engine.Write, back), engine.ErrNotConnected)
	require.NoError(t, b.Connect(soon(t), "127.97.2.1"+port))
	require.NoError(t, b.TransferSync(soon(t), "127.97.2.1"+port, engine.Write, back))
}

// Without a link nothing goes, and there is one at most.
func TestConnectOnce(t *testing.T) {
	a, _, remote := pair(t, "127.97.3", nil)
	require.ErrorIs(t, a.Connect(soon(t), remote), engine.ErrAlreadyConnected)
	require.ErrorIs(t, a.ConnectAsync(remote, 0), engine.ErrAlreadyConnected)
	require.NoError(t, a.Disconnect(soon(t), remote))
	require.ErrorIs(t, a.Disconnect(soon(t), remote), engine.ErrNotConnected)
	require.ErrorIs(t, a.DisconnectAsync(remote, 0), engine.ErrNotConnected)
	b := make([]byte, 8)
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Read, []engine.TransferOpDesc{{Local: b, RemoteAddr: 4096}}), engine.ErrNotConnected)
	_, err := a.TransferAsync(remote, engine.Read, []engine.TransferOpDesc{{Local: b, RemoteAddr: 4096}}, engine.TransferArgs{})
	require.ErrorIs(t, err, engine.ErrNotConnected)
	require.ErrorIs(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "n"}), engine.ErrNotConnected)
	require.NoError(t, a.Connect(soon(t), remote), "and again")
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:0", "host:1", "0.0.0.0:1"} {
		require.ErrorIs(t, a.Connect(soon(t), bad), engine.ErrParamInvalid, bad)
	}
}

// HIXL rejects a connection to oneself; here it is one like others.
func TestConnectToOneself(t *testing.T) {
	self := "127.97.4.1" + port
	e := start(t, self, nil)
	b, _ := register(t, e, 8192)
	fillPattern(b[:4096], 1)
	require.NoError(t, e.Connect(soon(t), self))
	require.NoError(t, e.TransferSync(soon(t), self, engine.Write, []engine.TransferOpDesc{piece(b[:4096], addr(b[4096:]))}))
	require.Equal(t, b[:4096], b[4096:])
	require.NoError(t, e.SendNotify(soon(t), self, engine.NotifyDesc{Name: "me"}))
	require.Equal(t, []engine.NotifyDesc{{Name: "me"}}, notifies(t, e, 1))
}

// A connection that is not made in time is a timeout, and leaves nothing behind.
func TestConnectTimeout(t *testing.T) {
	a := start(t, "127.97.10.1", nil)
	err := a.Connect(within(t, 200*time.Millisecond), "127.97.10.2"+port)
	require.ErrorIs(t, err, engine.ErrTimeout)
	s, err := a.GetAsyncConnectStatus("127.97.10.2" + port)
	require.NoError(t, err)
	require.Equal(t, engine.NotConnect, s)
	start(t, "127.97.10.2"+port, nil)
	require.NoError(t, a.Connect(soon(t), "127.97.10.2"+port))
}

// Links are bounded by channel_pool.max_channel only.
func TestMaxChannel(t *testing.T) {
	a := start(t, "127.97.11.1", map[string]string{engine.OptionGlobalResourceConfig: `{"channel_pool.max_channel": 2}`})
	for i := range 3 {
		start(t, fmt.Sprintf("127.97.11.%d%s", i+2, port), nil)
	}
	require.NoError(t, a.Connect(soon(t), "127.97.11.2"+port))
	require.NoError(t, a.Connect(soon(t), "127.97.11.3"+port))
	require.ErrorIs(t, a.Connect(soon(t), "127.97.11.4"+port), engine.ErrResourceExhausted)
	require.NoError(t, a.Disconnect(soon(t), "127.97.11.2"+port))
	require.NoError(t, a.Connect(soon(t), "127.97.11.4"+port))
}

// Beyond the high waterline links that nobody uses are put aside, down to the low one.
// They are links all the same: their next use connects them, and notifications arrive.
func TestIdleLinksAboveTheWaterline(t *testing.T) {
	engine.IdleAfter(t, 50*time.Millisecond)
	a := start(t, "127.97.30.1", map[string]string{
		engine.OptionGlobalResourceConfig: `{"channel_pool": {"max_channel": 8, "high_waterline": 0.5, "low_waterline": 0.25}}`,
	})
	here, _ := register(t, a, 64)
	servers := make([]*engine.Engine, 6)
	name := func(i int) string { return fmt.Sprintf("127.97.30.%d%s", 2+i, port) }
	theirs := make([][]byte, len(servers))
	for i := range servers {
		servers[i] = start(t, name(i), nil)
		theirs[i], _ = register(t, servers[i], 64)
		require.NoError(t, a.Connect(soon(t), name(i)))
	}
	stats := func() hixl.ContextStats { return a.Context().Stats() }
	require.Eventually(t, func() bool { return stats().Connected <= 4 && stats().Evictions >= 2 }, engine.Patience, time.Millisecond)
	for i := range servers {
		require.ErrorIs(t, a.Connect(soon(t), name(i)), engine.ErrAlreadyConnected)
		here[0] = byte(1 + i)
		require.NoError(t, a.TransferSync(soon(t), name(i), engine.Write, []engine.TransferOpDesc{piece(here, addr(theirs[i]))}))
		require.Equal(t, here[0], theirs[i][0])
		require.NoError(t, a.SendNotify(soon(t), name(i), engine.NotifyDesc{Name: "back"}))
		require.Eventually(t, func() bool {
			got, err := servers[i].GetNotifies()
			return err == nil && len(got) == 1
		}, engine.Patience, time.Millisecond)
	}
}

// Asynchronous connections go through their states.
func TestConnectAsync(t *testing.T) {
	a := start(t, "127.97.12.1", map[string]string{engine.OptionGlobalResourceConfig: `{"connect_pool": {"thread_num": "1", "task_queue_capacity": 2}}`})
	start(t, "127.97.12.2"+port, nil)
	nobody := "127.97.12.9" + port
	require.NoError(t, a.ConnectAsync(nobody, engine.Patience))
	require.Eventually(t, func() bool { s, _ := a.GetAsyncConnectStatus(nobody); return s == engine.Connecting }, engine.Patience, time.Millisecond)
	require.NoError(t, a.ConnectAsync("127.97.12.2"+port, 0))
	require.NoError(t, a.ConnectAsync("127.97.12.3"+port, time.Millisecond))
	require.ErrorIs(t, a.ConnectAsync("127.97.12.4"+port, 0), engine.ErrResourceExhausted)
	require.ErrorIs(t, a.DisconnectAsync("127.97.12.2"+port, 0), engine.ErrResourceExhausted)
	all, err := a.GetAsyncConnectStatuses()
	require.NoError(t, err)
	require.Equal(t, map[string]engine.AsyncConnectStatus{
		nobody: engine.Connecting, "127.97.12.2" + port: engine.ConnectPending, "127.97.12.3" + port: engine.ConnectPending,
	}, all)
	require.NoError(t, a.Disconnect(soon(t), "127.97.12.3"+port), "before its turn")
	require.NoError(t, a.Disconnect(soon(t), nobody), "while it is its turn")
	require.Eventually(t, func() bool { s, _ := a.GetAsyncConnectStatus("127.97.12.2" + port); return s == engine.Connected }, engine.Patience, time.Millisecond)
	require.NoError(t, a.ConnectAsync(nobody, 50*time.Millisecond))
	require.Eventually(t, func() bool { s, _ := a.GetAsyncConnectStatus(nobody); return s == engine.ConnectFailed }, engine.Patience, time.Millisecond)
	_, err = a.GetAsyncConnectStatus(nobody)
	require.ErrorIs(t, err, engine.ErrTimeout)
	require.ErrorIs(t, a.SendNotify(soon(t), nobody, engine.NotifyDesc{}), engine.ErrNotConnected)
	require.NoError(t, a.DisconnectAsync("127.97.12.2"+port, 0))
	require.Eventually(t, func() bool { s, _ := a.GetAsyncConnectStatus("127.97.12.2" + port); return s == engine.NotConnect }, engine.Patience, time.Millisecond)
	start(t, nobody, nil)
	require.NoError(t, a.Connect(soon(t), nobody), "what has failed can be tried again")
}

// With AutoConnect the first transfer connects, and a failure disconnects.
func TestAutoConnect(t *testing.T) {
	a, b, remote, cut := cuttable(t, "127.97.19", map[string]string{engine.OptionAutoConnect: "1"})
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	var all sync.WaitGroup
	for range 4 { // together they make one link
		all.Go(func() {
			if err := a.TransferSync(soon(t), remote, engine.Write, list); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	cut.Store(true)
	require.ErrorIs(t, a.TransferSync(cut.loses(t), remote, engine.Write, list), engine.ErrTimeout)
	s, err := a.GetAsyncConnectStatus(remote)
	require.NoError(t, err)
	require.Equal(t, engine.NotConnect, s)
	cut.Store(false)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list), "connected anew")
	require.NoError(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{Name: "n"}))
	engine.GiveUpAfter(t, 50*time.Millisecond)
	_, err = a.TransferAsync("127.97.19.9"+port, engine.Write, list, engine.TransferArgs{})
	require.ErrorIs(t, err, engine.ErrTimeout, "nobody is there")
}

// A link that has timed out is not used again before it is made anew.
func TestFailedLinkIsLatched(t *testing.T) {
	a, b, remote, cut := cuttable(t, "127.97.20", nil)
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
	cut.Store(true)
	err := a.TransferSync(cut.loses(t), remote, engine.Write, list)
	require.ErrorIs(t, err, engine.ErrTimeout)
	require.ErrorIs(t, err, hixl.ErrUnfenced, "the bytes may be on their way")
	cut.Store(false)
	err = a.TransferSync(soon(t), remote, engine.Write, list)
	require.ErrorIs(t, err, engine.ErrFailed)
	require.ErrorContains(t, err, "Disconnect and Connect")
	_, err = a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.ErrorIs(t, err, engine.ErrFailed)
	s, err := a.GetAsyncConnectStatus(remote)
	require.Equal(t, engine.ConnectFailed, s)
	require.ErrorIs(t, err, engine.ErrTimeout)
	require.ErrorIs(t, a.Connect(soon(t), remote), engine.ErrAlreadyConnected)
	require.NoError(t, a.Disconnect(soon(t), remote), "nothing can land any more")
	require.NoError(t, a.Connect(soon(t), remote))
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
}

// A remote engine that ends is noticed, and its links fail.
func TestRemoteEngineEnds(t *testing.T) {
	a, b, remote := pair(t, "127.97.21", nil)
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
	b.Finalize()
	require.Eventually(t, func() bool { s, _ := a.GetAsyncConnectStatus(remote); return s == engine.ConnectFailed }, engine.Patience, time.Millisecond)
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, list), engine.ErrFailed)
	require.NoError(t, a.Disconnect(soon(t), remote))
	reborn := start(t, remote, nil)
	require.NoError(t, a.Connect(soon(t), remote))
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, list), engine.ErrParamInvalid, "it has registered nothing")
	h, err := reborn.RegisterMem(engine.MemDesc{Addr: addr(there), Len: 4096}, engine.MemHost)
	require.NoError(t, err)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, list))
	require.NoError(t, reborn.DeregisterMem(soon(t), h))
}

// An asynchronous transfer does not time out by itself; who has waited long enough
// disconnects, and it fails.
func TestAsyncNeverTimesOut(t *testing.T) {
	a, b, remote, cut := cuttable(t, "127.97.22", nil)
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(there))}))
	cut.Store(true)
	req, err := a.TransferAsync(remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(there))}, engine.TransferArgs{})
	require.NoError(t, err)
	s, err := a.GetTransferStatus(req)
	require.NoError(t, err)
	require.Equal(t, engine.TransferWaiting, s)
	skipped, err := a.GetTransferStatuses(engine.GetTransferStatusArgs{SkipWaiting: true})
	require.NoError(t, err)
	require.Empty(t, skipped)
	err = a.Disconnect(within(t, 50*time.Millisecond), remote)
	require.ErrorIs(t, err, engine.ErrTimeout, "the remote engine does not answer")
	require.ErrorIs(t, err, hixl.ErrUnfenced)
	s, err = a.GetTransferStatus(req)
	require.Equal(t, engine.TransferFailed, s)
	require.ErrorIs(t, err, engine.ErrFailed)
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = a.GetTransferStatus(req)
	require.ErrorIs(t, err, engine.ErrParamInvalid)
}

// HIXL cannot cancel; here it can be, and nothing lands after that.
func TestCancelTransfer(t *testing.T) {
	a, b, remote, cut := cuttable(t, "127.97.23", nil)
	here, _ := register(t, a, 1<<20)
	there, _ := register(t, b, 1<<20)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	require.NoError(t, a.TransferSync(soon(t), remote, engine.Read, list))
	cut.Store(true)
	req, err := a.TransferAsync(remote, engine.Read, list, engine.TransferArgs{})
	require.NoError(t, err)
	require.NoError(t, a.CancelTransfer(soon(t), req), "what a read brings is stopped here")
	s, err := a.GetTransferStatus(req)
	require.Equal(t, engine.TransferFailed, s)
	require.ErrorIs(t, err, hixl.ErrCanceled)
	require.ErrorIs(t, a.CancelTransfer(soon(t), req), engine.ErrParamInvalid)

	req, err = a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.NoError(t, err)
	err = a.CancelTransfer(within(t, 20*time.Millisecond), req)
	require.ErrorIs(t, err, engine.ErrTimeout)
	require.ErrorIs(t, err, hixl.ErrUnfenced)
	cut.Store(false)
	require.NoError(t, a.CancelTransfer(soon(t), req))
}

// Links with asynchronous transfers are bounded by max_active_channels.
func TestMaxActiveChannels(t *testing.T) {
	a, b, remote := pair(t, "127.97.24", map[string]string{engine.OptionGlobalResourceConfig: `{"comm_resource_config": {"max_active_channels": 1}}`})
	c := start(t, "127.97.24.3"+port, nil)
	require.NoError(t, a.Connect(soon(t), "127.97.24.3"+port))
	here, _ := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	other, _ := register(t, c, 4096)
	req, err := a.TransferAsync(remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(there))}, engine.TransferArgs{})
	require.NoError(t, err)
	second, err := a.TransferAsync(remote, engine.Write, []engine.TransferOpDesc{piece(here, addr(there))}, engine.TransferArgs{})
	require.NoError(t, err)
	_, err = a.TransferAsync("127.97.24.3"+port, engine.Write, []engine.TransferOpDesc{piece(here, addr(other))}, engine.TransferArgs{})
	require.ErrorIs(t, err, engine.ErrResourceExhausted)
	for _, r := range []engine.TransferReq{req, second} {
		_, err := end(t, a, r)
		require.NoError(t, err)
	}
	req, err = a.TransferAsync("127.97.24.3"+port, engine.Write, []engine.TransferOpDesc{piece(here, addr(other))}, engine.TransferArgs{})
	require.NoError(t, err)
	_, err = end(t, a, req)
	require.NoError(t, err)
}

// HIXL binds calls to the thread with its device's context; here any goroutine will
// do.
func TestAnyGoroutine(t *testing.T) {
	a, b, remote := pair(t, "127.97.25", nil)
	here, _ := register(t, a, 1<<16)
	there, _ := register(t, b, 1<<16)
	fillPattern(here, 9)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			part, to := here[g*8192:][:8192], addr(there[g*8192:])
			for range 20 {
				if err := a.TransferSync(soon(t), remote, engine.Write, []engine.TransferOpDesc{piece(part, to)}); err != nil {
					t.Error(err)
				}
				req, err := a.TransferAsync(remote, engine.Write, []engine.TransferOpDesc{piece(part, to)}, engine.TransferArgs{})
				if err != nil {
					t.Error(err)
				}
				for s := engine.TransferWaiting; s == engine.TransferWaiting; {
					if s, err = a.GetTransferStatus(req); err != nil {
						t.Error(err)
					}
				}
				h, err := b.RegisterMem(engine.MemDesc{Bytes: make([]byte, 64)}, engine.MemHost)
				if err != nil {
					t.Error(err)
				}
				if err := b.DeregisterMem(context.Background(), h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, here, there)
}

// After Finalize all calls fail, and none hangs.
func TestFinalize(t *testing.T) {
	a, b, remote := pair(t, "127.97.26", nil)
	here, h := register(t, a, 4096)
	there, _ := register(t, b, 4096)
	list := []engine.TransferOpDesc{piece(here, addr(there))}
	require.NoError(t, a.ConnectAsync("127.97.26.9"+port, time.Minute))
	req, err := a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.NoError(t, err)
	a.Finalize()
	a.Finalize()
	_, err = a.GetTransferStatus(req)
	require.ErrorIs(t, err, engine.ErrFailed)
	require.ErrorIs(t, err, hixl.ErrClosed)
	require.ErrorIs(t, a.Connect(soon(t), remote), hixl.ErrClosed)
	require.ErrorIs(t, a.Disconnect(soon(t), remote), hixl.ErrClosed)
	require.ErrorIs(t, a.ConnectAsync(remote, 0), hixl.ErrClosed)
	require.ErrorIs(t, a.DisconnectAsync(remote, 0), hixl.ErrClosed)
	require.ErrorIs(t, a.TransferSync(soon(t), remote, engine.Write, list), hixl.ErrClosed)
	_, err = a.TransferAsync(remote, engine.Write, list, engine.TransferArgs{})
	require.ErrorIs(t, err, hixl.ErrClosed)
	require.ErrorIs(t, a.SendNotify(soon(t), remote, engine.NotifyDesc{}), hixl.ErrClosed)
	_, err = a.GetNotifies()
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = a.GetTransferStatuses(engine.GetTransferStatusArgs{})
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = a.GetAsyncConnectStatus(remote)
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = a.GetAsyncConnectStatuses()
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = a.RegisterMem(engine.MemDesc{Bytes: make([]byte, 8)}, engine.MemHost)
	require.ErrorIs(t, err, hixl.ErrClosed)
	require.NoError(t, a.DeregisterMem(soon(t), h))
}
