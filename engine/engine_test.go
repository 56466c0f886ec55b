package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/engine"
	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// noEnv is an environment of nothing but the ACK timeout, 1 s: a machine may stand
// still.
func noEnv(name string) string {
	if name == engine.EnvTimeout {
		return "18"
	}
	return ""
}

// start opens an engine on a loopback address.
func start(t testing.TB, local string, options map[string]string) *engine.Engine {
	t.Helper()
	return startWith(t, engine.Config{LocalEngine: local, Options: options})
}

func startWith(t testing.TB, cfg engine.Config) *engine.Engine {
	t.Helper()
	if cfg.Getenv == nil {
		cfg.Getenv = noEnv
	}
	e, err := engine.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Finalize)
	return e
}

// port is where all engines of the tests that listen do.
const port = ":16000"

// pair opens two engines and connects the first to the second, whose name is
// returned.
func pair(t testing.TB, net string, options map[string]string) (a, b *engine.Engine, remote string) {
	t.Helper()
	remote = net + ".2" + port
	b = start(t, remote, nil)
	a = start(t, net+".1", options)
	if options[engine.OptionAutoConnect] != "1" {
		require.NoError(t, a.Connect(soon(t), remote))
	}
	return a, b, remote
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), engine.Patience)
	t.Cleanup(cancel)
	return ctx
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// loss is a context whose deadline passes when the wire loses a request, and not
// before, however slow the machine is.
type loss struct {
	context.Context
	lost chan struct{}
}

func (l *loss) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (l *loss) Done() <-chan struct{}       { return l.lost }

func (l *loss) Err() error {
	select {
	case <-l.lost:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// register maps memory and registers it by its address.
func register(t testing.TB, e *engine.Engine, n int) ([]byte, *engine.MemHandle) {
	t.Helper()
	b := mapMemory(t, n)
	h, err := e.RegisterMem(engine.MemDesc{Addr: addr(b), Len: uint64(n)}, engine.MemHost)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.DeregisterMem(context.Background(), h)) }) // before it is unmapped
	return b, h
}

func piece(local []byte, remote uintptr) engine.TransferOpDesc {
	return engine.TransferOpDesc{LocalAddr: addr(local), RemoteAddr: remote, Len: uint64(len(local))}
}

// hole is a wire that can be cut.
type hole struct {
	transport.Conn
	cut *scissors
}

// scissors cut a wire.
type scissors struct {
	atomic.Bool
	mu      sync.Mutex
	waiting []*loss // guarded by mu
}

// loses returns a context that ends when the wire loses a WRITE or a READ.
func (s *scissors) loses(t testing.TB) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &loss{t.Context(), make(chan struct{})}
	s.waiting = append(s.waiting, l)
	return l
}

func (h *hole) WriteBatch(b []transport.Tx) (int, error) {
	if !h.cut.Load() {
		return h.Conn.WriteBatch(b)
	}
	for i := range b {
		if roce.Opcode(b[i].Data[0]).Has(roce.HasRETH) {
			h.cut.lose()
		}
	}
	return len(b), nil
}

func (s *scissors) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.waiting {
		close(l.lost)
	}
	s.waiting = nil
}

// cuttable is pair whose first engine sends nothing while cut.
func cuttable(t testing.TB, net string, options map[string]string) (a, b *engine.Engine, remote string, cut *scissors) {
	t.Helper()
	cut, remote = new(scissors), net+".2"+port
	b = start(t, remote, nil)
	a = startWith(t, engine.Config{
		LocalEngine: net + ".1", Options: options,
		NIC: hixl.Config{WrapTransport: func(c transport.Conn) transport.Conn { return &hole{c, cut} }},
	})
	if options[engine.OptionAutoConnect] != "1" {
		require.NoError(t, a.Connect(soon(t), remote))
	}
	t.Cleanup(func() { cut.Store(false) })
	return a, b, remote, cut
}

// notifies waits for n notifications.
func notifies(t testing.TB, e *engine.Engine, n int) (all []engine.NotifyDesc) {
	t.Helper()
	require.Eventually(t, func() bool {
		more, err := e.GetNotifies()
		require.NoError(t, err)
		all = append(all, more...)
		return len(all) >= n
	}, engine.Patience, time.Millisecond)
	require.Len(t, all, n)
	return all
}

// end waits for the end of a transfer.
func end(t testing.TB, e *engine.Engine, req engine.TransferReq) (s engine.TransferStatus, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err = e.GetTransferStatus(req)
		return s != engine.TransferWaiting
	}, engine.Patience, time.Millisecond)
	return s, err
}

func fillPattern(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i/251 + seed)
	}
}
