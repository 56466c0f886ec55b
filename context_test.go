package hixl_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/mr"
)

// openContext opens a context on real sockets.
func openContext(t testing.TB, addr string, cfg hixl.PeerConfig) *hixl.Context {
	t.Helper()
	c := at(addr)
	if cfg.Connect.Timeout == 0 {
		cfg.Connect.Timeout = ackTimeout
	}
	c.Peers = cfg
	x, err := hixl.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// couple opens two contexts and joins them: the second is dialed.
func couple(t testing.TB, net string, cfg hixl.PeerConfig) (a, b *hixl.Context, toB, toA *hixl.Peer) {
	t.Helper()
	a, b = openContext(t, net+".1", cfg), openContext(t, net+".2", cfg)
	l, err := b.Listen(soon(t), ":18515")
	require.NoError(t, err)
	toB, err = a.Dial(soon(t), l.Addr().String())
	require.NoError(t, err)
	toA, err = l.Accept(soon(t))
	require.NoError(t, err)
	return a, b, toB, toA
}

func alloc(t testing.TB, c *hixl.Context, size int) *hixl.Region {
	t.Helper()
	r, err := c.Alloc(size, everything)
	require.NoError(t, err)
	return r
}

func TestContext(t *testing.T) {
	ctx := soon(t)
	a, b, toB, toA := couple(t, "127.88.40", hixl.PeerConfig{})
	local, far := alloc(t, a, 1<<20), alloc(t, b, 1<<20)
	remote, err := toB.Import(b.Describe(far))
	require.NoError(t, err)
	require.Equal(t, b.ID(), toB.ID())
	require.Equal(t, a.ID(), toA.ID())
	require.Equal(t, hixl.PeerUp, toB.State())
	require.EqualValues(t, 1, toA.Generation())

	copy(local.Bytes(), "parameters")
	require.NoError(t, toB.Write(ctx, hixl.Desc{Local: local, Remote: remote, RemoteOff: 64, Len: 10}))
	require.Equal(t, "parameters", string(far.Bytes()[64:74]))
	require.NoError(t, toB.Read(ctx, hixl.Desc{Local: local, LocalOff: 100, Remote: remote, RemoteOff: 64, Len: 10}))
	require.Equal(t, "parameters", string(local.Bytes()[100:110]))
	require.NoError(t, toB.Write(ctx, hixl.Desc{Inline: []byte("inline"), Remote: remote}))
	require.Equal(t, "inline", string(far.Bytes()[:6]))

	before, err := toB.FetchAdd(ctx, remote, 8, 5)
	require.NoError(t, err)
	require.Zero(t, before)
	found, err := toB.CompareSwap(ctx, remote, 8, 5, 9)
	require.NoError(t, err)
	require.EqualValues(t, 5, found)
	require.NoError(t, toB.AtomicStore(ctx, remote, 16, 77))
	require.EqualValues(t, 9, binary.NativeEndian.Uint64(far.Bytes()[8:]))
	require.EqualValues(t, 77, binary.NativeEndian.Uint64(far.Bytes()[16:]))

	// The other side uses the same connection.
	back, err := toA.Import(a.Describe(local))
	require.NoError(t, err)
	require.NoError(t, toA.Write(ctx, hixl.Desc{Local: far, LocalOff: 64, Remote: back, RemoteOff: 500, Len: 10}))
	require.Equal(t, "parameters", string(local.Bytes()[500:510]))

	again, err := a.Dial(ctx, toB.Address().String())
	require.NoError(t, err)
	require.Same(t, toB, again)
}

// A list of many pieces goes over all queue pairs, in less than their queues hold.
func TestTransferList(t *testing.T) {
	ctx := soon(t)
	a, b, toB, _ := couple(t, "127.88.41", hixl.PeerConfig{QPs: 3, SendQueue: 8})
	local, far := alloc(t, a, 1<<20), alloc(t, b, 1<<20)
	remote, err := toB.Import(b.Describe(far))
	require.NoError(t, err)
	for i := range local.Bytes() {
		local.Bytes()[i] = byte(i * 7 / 3)
	}
	var list []hixl.Desc
	for i := range uint64(500) { // blocks in reverse order
		list = append(list, hixl.Desc{Local: local, LocalOff: i * 2048, Remote: remote, RemoteOff: (499 - i) * 2048, Len: 2048})
	}
	require.NoError(t, toB.Transfer(ctx, hixl.Write, list))
	for i := range uint64(500) {
		require.Equal(t, local.Bytes()[i*2048:(i+1)*2048], far.Bytes()[(499-i)*2048:(500-i)*2048])
	}
	clear(local.Bytes())
	done := make(chan *hixl.Handle, 1)
	h, err := toB.Start(&hixl.Transfer{Op: hixl.Read, Descs: list, UserData: "kv", Done: func(h *hixl.Handle) { done <- h }})
	require.NoError(t, err)
	<-h.Done()
	require.NoError(t, h.Err())
	require.EqualValues(t, 500*2048, h.Arrived())
	require.Same(t, h, <-done)
	require.Equal(t, "kv", h.UserData())
	require.Equal(t, far.Bytes()[499*2048:500*2048], local.Bytes()[:2048])
	for a.NIC().Stats().QPs < 3 { // they are made while there is work for them
		require.NoError(t, toB.Transfer(ctx, hixl.Read, list))
	}
}

// A context is a peer of its own as well.
func TestSelf(t *testing.T) {
	ctx := soon(t)
	c := openContext(t, "127.88.42.1", hixl.PeerConfig{})
	l, err := c.Listen(ctx, ":18515")
	require.NoError(t, err)
	p, err := c.Dial(ctx, ":18515")
	require.NoError(t, err)
	self, err := l.Accept(ctx)
	require.NoError(t, err)
	require.NotSame(t, p, self)
	mem := alloc(t, c, 4096)
	r, err := p.Import(c.Describe(mem))
	require.NoError(t, err)
	copy(mem.Bytes(), "myself")
	require.NoError(t, p.Write(ctx, hixl.Desc{Local: mem, Remote: r, RemoteOff: 100, Len: 6}))
	require.Equal(t, "myself", string(mem.Bytes()[100:106]))
	_, err = p.FetchAdd(ctx, r, 8, 1)
	require.NoError(t, err)
}

// Mistakes are found before anything is sent.
func TestTransferMistakes(t *testing.T) {
	ctx := soon(t)
	a, b, toB, toA := couple(t, "127.88.43", hixl.PeerConfig{})
	local, far := alloc(t, a, 4096), alloc(t, b, 4096)
	remote, err := toB.Import(b.Describe(far))
	require.NoError(t, err)
	readOnly, err := b.Register(make([]byte, 64), hixl.RemoteRead)
	require.NoError(t, err)
	seen, err := toB.Import(b.Describe(readOnly))
	require.NoError(t, err)
	fixed, err := a.Register(make([]byte, 64), 0)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		want error
		do   func() error
	}{
		"beyond the remote end": {mr.ErrBounds, func() error { return toB.Write(ctx, hixl.Desc{Local: local, Remote: remote, RemoteOff: 4000, Len: 97}) }},
		"beyond the local end":  {mr.ErrBounds, func() error { return toB.Write(ctx, hixl.Desc{Local: local, LocalOff: 4000, Remote: remote, Len: 97}) }},
		"an overflow": {mr.ErrBounds, func() error {
			return toB.Write(ctx, hixl.Desc{Local: local, Remote: remote, RemoteOff: 1<<64 - 8, Len: 16})
		}},
		"no right":          {mr.ErrPermission, func() error { return toB.Write(ctx, hixl.Desc{Local: local, Remote: seen, Len: 8}) }},
		"no local right":    {mr.ErrPermission, func() error { return toB.Read(ctx, hixl.Desc{Local: fixed, Remote: remote, Len: 8}) }},
		"no local region":   {hixl.ErrNoRegion, func() error { return toB.Write(ctx, hixl.Desc{Remote: remote, Len: 8}) }},
		"no remote region":  {hixl.ErrNoRegion, func() error { return toB.Write(ctx, hixl.Desc{Local: local, Len: 8}) }},
		"another context's": {mr.ErrPD, func() error { return toB.Write(ctx, hixl.Desc{Local: far, Remote: remote, Len: 8}) }},
		"another peer's":    {mr.ErrPD, func() error { return toA.Write(ctx, hixl.Desc{Local: far, Remote: remote, Len: 8}) }},
		"unaligned atomic":  {nil, func() error { _, err := toB.FetchAdd(ctx, remote, 4, 1); return err }},
		"no pieces":         {hixl.ErrTransfer, func() error { return toB.Transfer(ctx, hixl.Write, nil) }},
		"no operation":      {hixl.ErrTransfer, func() error { return toB.Transfer(ctx, hixl.Lookup, make([]hixl.Desc, 1)) }},
		"two words":         {hixl.ErrTransfer, func() error { return toB.Transfer(ctx, hixl.FetchAdd, make([]hixl.Desc, 2)) }},
		"inline read":       {hixl.ErrTransfer, func() error { return toB.Read(ctx, hixl.Desc{Inline: []byte("x"), Remote: remote}) }},
		"long inline":       {hixl.ErrTransfer, func() error { return toB.Write(ctx, hixl.Desc{Inline: make([]byte, 257), Remote: remote}) }},
	} {
		err := c.do()
		require.Error(t, err, name)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
	}
	require.Zero(t, toB.Err())
	require.NoError(t, toB.Write(ctx, hixl.Desc{Local: local, Remote: remote, Len: 8}), "nothing is broken")

	wrong := b.Describe(far)
	wrong.Context[0]++
	_, err = toB.Import(wrong)
	require.ErrorIs(t, err, hixl.ErrStale)
	require.ErrorIs(t, err, hixl.ErrPeerRestarted)
}

// A peer that nobody is is an error of the first connection.
func TestDialNobody(t *testing.T) {
	a, b := openContext(t, "127.88.44.1", hixl.PeerConfig{}), openContext(t, "127.88.44.2", hixl.PeerConfig{})
	l, err := b.Listen(soon(t), ":18515")
	require.NoError(t, err)
	_, err = a.Dial(soon(t), "127.88.44.2:1")
	require.ErrorIs(t, err, hixl.ErrPeerDown)
	require.ErrorIs(t, err, hixl.ErrRejected)
	p, err := a.Peer(l.Addr())
	require.NoError(t, err)
	require.Equal(t, hixl.PeerIdle, p.State())
	require.NoError(t, p.Connect(soon(t)))
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Connect(soon(t)), hixl.ErrPeerDown)
	q, err := a.Dial(soon(t), l.Addr().String())
	require.NoError(t, err)
	require.NotSame(t, p, q)

	// A verbs listener is no context, and says so.
	verbs := newEnd(t, at("127.88.44.3"), hixl.QPConfig{})
	vl, err := verbs.nic.Listen(soon(t), ":18515", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: hixl.QPConfig{PD: verbs.pd, SendCQ: verbs.cq, RecvCQ: verbs.cq}}})
	require.NoError(t, err)
	go func() { _, _ = vl.Accept(soon(t)) }()
	_, err = a.Dial(soon(t), vl.Addr().String())
	require.ErrorIs(t, err, hixl.ErrPeerRefused)
}
