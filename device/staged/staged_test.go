package staged_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/device/staged"
	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// far is a host driver whose memory cannot be mapped, and whose copies can be held
// up and made to fail.
type far struct {
	*host.Driver

	mu     sync.Mutex
	gate   chan struct{} // copies wait for it to be closed, when there is one
	fail   error         // the next copies fail with it
	dead   error         // everything does
	copies []int         // sizes of the lists that were queued
}

func (d *far) Caps() device.Caps {
	c := d.Driver.Caps()
	c.Mapping = ""
	return c
}

func (d *far) NewStream(priority int) (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead != nil {
		return nil, d.dead
	}
	s, err := d.Driver.NewStream(priority)
	return &farStream{Stream: s, d: d}, err
}

// hold makes copies wait until the function it returns is called.
func (d *far) hold() (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	d.gate = gate
	d.mu.Unlock()
	return func() {
		d.mu.Lock()
		d.gate = nil
		d.mu.Unlock()
		close(gate)
	}
}

func (d *far) lists() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int(nil), d.copies...)
}

type farStream struct {
	device.Stream
	d    *far
	once error
}

func (s *farStream) Copy(list ...device.Copy) error {
	s.d.mu.Lock()
	gate, dead := s.d.gate, s.d.dead
	n := 0
	for i := range list {
		n += int(list[i].Bytes())
	}
	s.d.copies = append(s.d.copies, n)
	s.once, s.d.fail = s.d.fail, nil
	s.d.mu.Unlock()
	if dead != nil {
		return dead
	}
	if gate != nil {
		if err := s.Stream.Do(func(error) { <-gate }); err != nil {
			return err
		}
	}
	return s.Stream.Copy(list...)
}

func (s *farStream) Do(f func(error)) error {
	once := s.once
	return s.Stream.Do(func(err error) { f(errors.Join(err, once)) })
}

func newFar(t *testing.T) *far {
	d := &far{Driver: host.NewDriver()}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newPool(t *testing.T, d device.Driver, c staged.Config) *staged.Pool {
	t.Helper()
	p, err := staged.New(d, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func newMemory(t *testing.T, p *staged.Pool, size uint64) *staged.Memory {
	t.Helper()
	m, err := p.Alloc(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func TestConforms(t *testing.T) {
	for name, c := range map[string]struct {
		drv func(t *testing.T) device.Driver
		cfg staged.Config
	}{
		"copies":       {func(t *testing.T) device.Driver { return newFar(t) }, staged.Config{}},
		"tiny buffers": {func(t *testing.T) device.Driver { return newFar(t) }, staged.Config{Chunk: 4096, Buffers: 2, Streams: 1}},
		"many streams": {func(t *testing.T) device.Driver { return newFar(t) }, staged.Config{Chunk: 8192, Buffers: 16, Streams: 8}},
		"mapped":       {func(t *testing.T) device.Driver { d := newFar(t); return d.Driver }, staged.Config{}},
		"mapped, tiny": {func(t *testing.T) device.Driver { d := newFar(t); return d.Driver }, staged.Config{Small: 16, SmallRead: staged.None, Chunk: 4096, Buffers: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Memory {
				return newMemory(t, newPool(t, c.drv(t), c.cfg), 3*devicetest.MinSize+5)
			})
		})
	}
}

func TestConfig(t *testing.T) {
	d := newFar(t)
	for _, c := range []staged.Config{{Streams: 17}, {Chunk: 1}, {Buffers: 1}, {Small: 1 << 21}, {SmallRead: -2}, {Streams: staged.None}} {
		_, err := staged.New(d, c)
		require.ErrorIs(t, err, device.ErrArgument, "%+v", c)
	}
	require.Equal(t, (2*16+1)*256<<10, staged.Config{}.Bound())
	require.Equal(t, device.Usage{}, d.Usage(), "a refused pool leaves nothing")
	_, err := staged.New(d, staged.Config{Priority: 3})
	require.ErrorIs(t, err, device.ErrArgument)
	require.Equal(t, device.Usage{}, d.Usage())
}

// waitFor collects ends by their tokens.
type ends struct {
	mu  sync.Mutex
	got map[uint64]error
	cnd *sync.Cond
}

func newEnds() *ends {
	e := &ends{got: make(map[uint64]error)}
	e.cnd = sync.NewCond(&e.mu)
	return e
}

func (e *ends) MemoryDone(token uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got[token] = err
	e.cnd.Broadcast()
}

func (e *ends) wait(token uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if err, ok := e.got[token]; ok {
			return err
		}
		e.cnd.Wait()
	}
}

func (e *ends) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}

// What arrives while the engine works leaves in one large copy.
func TestWritesAreGathered(t *testing.T) {
	d := newFar(t)
	p := newPool(t, d, staged.Config{Streams: 1, Chunk: 64 << 10})
	m := newMemory(t, p, 1<<20)
	release, e := d.hold(), newEnds()
	const packet, packets = 1024, 64
	data := make([]byte, packet*packets)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	write := func(i int) {
		done, err := m.WriteV([]device.Vec{{Off: uint64(i * packet), B: data[i*packet:][:packet]}}, uint64(i), e)
		require.False(t, done)
		require.NoError(t, err)
	}
	write(0)
	require.Eventually(t, func() bool { return len(d.lists()) == 1 }, 2*time.Minute, time.Millisecond, "a lone packet leaves at once")
	for i := 1; i < packets; i++ {
		write(i)
	}
	require.Zero(t, e.count(), "nothing is reported before it is in device memory")
	release()
	for i := range packets {
		require.NoError(t, e.wait(uint64(i)))
	}
	gathered(t, d.lists(), packet, packet*packets)
	got := make([]byte, len(data))
	require.NoError(t, device.ReadAt(m, got, 0))
	require.Equal(t, data, got)
	require.Zero(t, p.Stats().Waited)
}

// So does what is read.
func TestReadsAreGathered(t *testing.T) {
	d := newFar(t)
	p := newPool(t, d, staged.Config{Streams: 1})
	m := newMemory(t, p, 1<<20)
	want := make([]byte, 64<<10)
	for i := range want {
		want[i] = byte(i * 3)
	}
	require.NoError(t, device.WriteAt(m, want, 0))
	before := len(d.lists())
	release, e, got := d.hold(), newEnds(), make([]byte, len(want))
	for i := range 64 {
		done, err := m.ReadV([]device.Vec{{Off: uint64(i) << 10, B: got[i<<10:][:1<<10]}}, uint64(i), e)
		require.False(t, done)
		require.NoError(t, err)
		if i == 0 {
			require.Eventually(t, func() bool { return len(d.lists()) == before+1 }, 2*time.Minute, time.Millisecond)
		}
	}
	release()
	for i := range 64 {
		require.NoError(t, e.wait(uint64(i)))
	}
	require.Equal(t, want, got)
	gathered(t, d.lists()[before:], 1<<10, 64<<10)
}

// gathered checks that a stream that was held up took the first piece alone, the next
// with what had come until then, and all the rest in one.
func gathered(t *testing.T, lists []int, first, all int) {
	t.Helper()
	require.Equal(t, first, lists[0])
	require.LessOrEqual(t, len(lists), 3)
	sum := 0
	for _, n := range lists {
		sum += n
	}
	require.Equal(t, all, sum)
}

// Pinned memory stays within its bound however slow the engine is, and a memory
// says that it is congested.
func TestStagingIsBounded(t *testing.T) {
	d := newFar(t)
	cfg := staged.Config{Streams: 1, Chunk: 4096, Buffers: 3, Spill: 8192}
	p := newPool(t, d, cfg)
	m := newMemory(t, p, 1<<20)
	release, e := d.hold(), newEnds()
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i >> 10)
	}
	for i := range 256 {
		_, err := m.WriteV([]device.Vec{{Off: uint64(i) << 12, B: data[i<<12:][:1<<12]}}, uint64(i), e)
		require.NoError(t, err)
		require.Equal(t, i >= cfg.Buffers+2, m.Congested(), "after %d", i+1)
	}
	require.Equal(t, cfg.Bound(), p.Stats().Staging+cfg.Spill)
	require.EqualValues(t, cfg.Bound(), d.Usage().HostBytes+uint64(cfg.Spill))
	release()
	for i := range 256 {
		require.NoError(t, e.wait(uint64(i)))
	}
	require.False(t, m.Congested())
	require.EqualValues(t, cfg.Bound(), d.Usage().HostBytes+uint64(cfg.Spill))
	got := make([]byte, len(data))
	require.NoError(t, device.ReadAt(m, got, 0))
	require.Equal(t, data, got)
}

// A copy that fails takes its operations along, and nothing else.
func TestFailedCopy(t *testing.T) {
	d := newFar(t)
	p := newPool(t, d, staged.Config{})
	m, other := newMemory(t, p, 4096), newMemory(t, p, 4096)
	d.mu.Lock()
	d.fail = &device.DriverError{Device: "far", Code: 5, Name: "FIVE"}
	d.mu.Unlock()
	err := device.WriteAt(m, make([]byte, 100), 0)
	require.ErrorIs(t, err, device.ErrFailed)
	require.ErrorContains(t, err, "FIVE (5)")
	require.NoError(t, device.WriteAt(m, make([]byte, 100), 0))
	require.NoError(t, device.WriteAt(other, make([]byte, 100), 0))
	require.EqualValues(t, 1, p.Stats().Failed)
	require.Equal(t, 4, d.Usage().Streams, "the stream was replaced")
}

// A lost device ends all its operations, those that wait as well.
func TestLostDevice(t *testing.T) {
	d := newFar(t)
	p, err := staged.New(d, staged.Config{Streams: 1, Chunk: 4096, Buffers: 2})
	require.NoError(t, err)
	m, err := p.Alloc(1 << 16)
	require.NoError(t, err)
	release, e := d.hold(), newEnds()
	const n = 40
	ops := make([]device.AtomicOp, n)
	for i := range uint64(n) {
		switch i % 3 {
		case 0:
			_, err = m.WriteV([]device.Vec{{Off: i * 512, B: make([]byte, 1000)}}, i, e)
		case 1:
			_, err = m.ReadV([]device.Vec{{Off: i * 512, B: make([]byte, 1000)}}, i, e)
		case 2:
			ops[i] = device.AtomicOp{Kind: device.FetchAdd, Off: i * 8}
			_, err = m.Atomic(&ops[i], i, e)
		}
		require.NoError(t, err)
	}
	require.ErrorIs(t, m.Close(), device.ErrBusy)
	require.ErrorIs(t, p.Close(), device.ErrBusy)
	lost := &device.DriverError{Device: "far", Class: device.ErrLost, Code: 1, Name: "GONE"}
	d.mu.Lock()
	d.dead = lost
	d.mu.Unlock()
	release()
	failed := 0
	for i := range uint64(n) {
		if err := e.wait(i); err != nil {
			require.ErrorIs(t, err, device.ErrLost)
			failed++
		}
	}
	require.Positive(t, failed)
	require.ErrorIs(t, device.WriteAt(m, []byte{1}, 0), device.ErrLost, "at once")
	_, err = p.Alloc(10)
	require.ErrorIs(t, err, device.ErrLost)
	require.Zero(t, p.Stats().Spilled)
	require.NoError(t, m.Close())
	require.NoError(t, p.Close())
	require.Equal(t, device.Usage{}, d.Usage())
}

func TestAdopt(t *testing.T) {
	d := newFar(t)
	p := newPool(t, d, staged.Config{})
	b, err := d.Alloc(8192, device.AllocOptions{})
	require.NoError(t, err)
	part := device.Block{Addr: b.Addr + 64, Size: 1000}
	m, err := p.Adopt(part)
	require.NoError(t, err)
	require.Equal(t, part, m.Block())
	require.NoError(t, device.WriteAt(m, []byte("tensor"), 10))
	got := make([]byte, 6)
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: b.Addr + 74, Host: got}))
	require.Equal(t, "tensor", string(got))
	require.NoError(t, m.Close())
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: b.Addr, Host: got}), "it stays its owner's")

	_, err = p.Adopt(device.Block{Addr: b.Addr + 8000, Size: 1000})
	require.ErrorIs(t, err, device.ErrRange)
	_, err = p.Adopt(device.Block{Addr: 64, Size: 10})
	require.ErrorIs(t, err, device.ErrArgument)
	require.ErrorContains(t, err, "host memory goes by device/host")
	_, err = p.Adopt(device.Block{Addr: b.Addr})
	require.ErrorIs(t, err, device.ErrSize)
	require.NoError(t, d.Free(b))
}

func TestLifeCycle(t *testing.T) {
	d := newFar(t)
	p, err := staged.New(d, staged.Config{})
	require.NoError(t, err)
	require.Equal(t, device.Driver(d), p.Driver())
	m, err := p.Alloc(100)
	require.NoError(t, err)
	require.Nil(t, m.Bytes())
	require.EqualValues(t, m.Block().Addr, device.AddressOf(m))
	require.ErrorIs(t, p.Close(), device.ErrBusy)
	require.NoError(t, m.Retain())
	require.ErrorIs(t, m.Close(), device.ErrBusy)
	m.Release()
	require.PanicsWithValue(t, "staged: Release without Retain", m.Release)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Retain(), device.ErrClosed)
	require.ErrorIs(t, device.WriteAt(m, []byte{1}, 0), device.ErrClosed)
	_, err = m.Atomic(&device.AtomicOp{Kind: device.Store}, 0, nil)
	require.ErrorIs(t, err, device.ErrClosed)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err = p.Alloc(10)
	require.ErrorIs(t, err, device.ErrClosed)
	require.Equal(t, device.Usage{}, d.Usage())
}

// Fresh memory does not show what was there before.
func TestAllocClears(t *testing.T) {
	d := newFar(t)
	p := newPool(t, d, staged.Config{})
	m := newMemory(t, p, 3<<20)
	got := make([]byte, 3<<20)
	require.NoError(t, d.Copy(device.Copy{Dir: device.Out, Dev: m.Block().Addr, Host: got}))
	require.Equal(t, make([]byte, 3<<20), got)
}

// Where there is a mapping, what is small is done at once; what is large, or in the
// way of something large, is not.
func TestSmallMessagesGoThroughTheMapping(t *testing.T) {
	d := newFar(t).Driver
	p := newPool(t, d, staged.Config{Small: 1000, SmallRead: 100})
	m := newMemory(t, p, 1<<16)
	require.True(t, m.Mapped())
	e := newEnds()
	for _, c := range []struct {
		size        int
		write, read bool
	}{{1, true, true}, {100, true, true}, {101, true, false}, {1000, true, false}, {1001, false, false}} {
		v := []device.Vec{{Off: 3, B: make([]byte, c.size)}}
		done, err := m.WriteV(v, uint64(c.size), e)
		require.NoError(t, err)
		require.Equal(t, c.write, done, "write of %d bytes", c.size)
		if !done {
			require.NoError(t, e.wait(uint64(c.size)))
		}
		done, err = m.ReadV(v, uint64(1000_000+c.size), e)
		require.NoError(t, err)
		require.Equal(t, c.read, done, "read of %d bytes", c.size)
		if !done {
			require.NoError(t, e.wait(uint64(1000_000+c.size)))
		}
	}
	op := device.AtomicOp{Kind: device.FetchAdd, Off: 64, Operand: 5}
	done, err := m.Atomic(&op, 0, e)
	require.True(t, done)
	require.NoError(t, err)
	word := make([]byte, 8)
	require.NoError(t, device.ReadAt(m, word, 64))
	require.EqualValues(t, 5, binary.NativeEndian.Uint64(word))
	s := p.Stats()
	require.EqualValues(t, 4, s.MappedWrites)
	require.EqualValues(t, 1, s.MappedAtomics)
	require.Zero(t, s.Atomics)
}
