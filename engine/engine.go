package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gohixl/hixl"
)

// DefaultTimeout is how long calls wait whose context has no deadline.
const DefaultTimeout = time.Second

// autoHeartbeat is how often a link is looked after with the option AutoConnect.
const autoHeartbeat = 10 * time.Second

// waits is how long calls wait whose context has no deadline, how long the first
// transfer waits for its link with the option AutoConnect, and after what time a link
// that nobody uses is idle. Tests have more patience, or less.
var waits = struct{ call, autoConnect, idle time.Duration }{DefaultTimeout, 3 * time.Second, hixl.DefaultIdleAfter}

// Config is what [Open] needs.
type Config struct {
	// LocalEngine is the engine's name and address: "ip:port" or "[ipv6]:port"; others
	// can connect to it then. With "ip", or port 0, it only connects to others.
	LocalEngine string
	// Options are strings, see [ParseOptions].
	Options map[string]string
	// NIC sets up what is below; Address and Peers in it are the engine's.
	NIC hixl.Config
	// Device returns the memory of an accelerator that MemDesc names, for
	// [Engine.RegisterMem] with [MemDevice]. nil: there is none.
	Device func(m MemDesc) (hixl.Memory, error)
	// Getenv takes the place of os.Getenv.
	Getenv func(string) string
}

// Engine moves data between its registered memory and that of other engines. All
// methods may be called from any goroutine. Those that wait take a context whose
// deadline is the timeout; one without waits for [DefaultTimeout].
type Engine struct {
	cfg    Config
	opts   *Options
	self   netip.AddrPort
	c      *hixl.Context
	dir    directory
	relay  relay
	tasks  tasks
	ctx    context.Context // ends with Finalize
	cancel context.CancelFunc
	wg     sync.WaitGroup

	regs    sync.Mutex            // one registration at a time
	handles map[memKey]*MemHandle // guarded by regs

	mu     sync.Mutex
	closed bool // guarded by mu, as all below
	local  spans[*MemHandle]
	links  map[netip.AddrPort]*link
	guests []*guest
	reqs   map[TransferReq]*request
	lastID TransferReq
	active int // links with requests
}

// Initialize opens an engine at localEngine, see [Config], with options as strings,
// see [ParseOptions]. The error is a *[StatusError]: [StatusParamInvalid],
// [StatusUnsupported], or [StatusFailed] when the address cannot be used.
func Initialize(localEngine string, options map[string]string) (*Engine, error) {
	return Open(Config{LocalEngine: localEngine, Options: options})
}

// Open is [Initialize] with more to choose.
func Open(cfg Config) (*Engine, error) {
	e, err := open(cfg)
	if err != nil {
		return nil, fail("Initialize", cfg.LocalEngine, err)
	}
	return e, nil
}

func open(cfg Config) (*Engine, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	self, err := parseLocal(cfg.LocalEngine)
	if err != nil {
		return nil, err
	}
	opts, err := parseOptions(cfg.Options, cfg.Getenv)
	if err != nil {
		return nil, err
	}
	if err := opts.checkAddress(self.Addr()); err != nil {
		return nil, err
	}
	if cfg.NIC.Transport == nil {
		cfg.NIC.Address = self.Addr()
	}
	cfg.NIC.Peers = opts.peers()
	e := &Engine{
		cfg: cfg, opts: opts, self: self, handles: make(map[memKey]*MemHandle),
		links: make(map[netip.AddrPort]*link), reqs: make(map[TransferReq]*request),
	}
	if e.c, err = hixl.Open(cfg.NIC); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.relay.init(e.c, opts)
	if err := e.start(); err != nil {
		e.cancel()
		return nil, errors.Join(err, e.c.Close())
	}
	return e, nil
}

// start publishes the directory, and then lets others in.
func (e *Engine) start() error {
	if err := e.dir.open(e.c, dirEntries); err != nil {
		return err
	}
	if e.self.Port() != 0 {
		l, err := e.c.Listen(e.ctx, e.self.String())
		if err != nil {
			return err
		}
		e.wg.Go(func() { e.receive(l) })
	}
	e.tasks.start(&e.wg, e.ctx, e.opts.Resources.ConnectThreads, e.opts.Resources.ConnectQueue)
	return nil
}

// parseLocal reads the name of the local engine.
func parseLocal(name string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(name)
	if err != nil {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(name); err == nil {
			at = netip.AddrPortFrom(ip, 0)
		}
	}
	if err != nil || at.Addr().IsUnspecified() || at.Addr().IsMulticast() {
		return at, invalid("local engine %q, allowed: ip, ip:port or [ipv6]:port, of an address of this host", clip(name))
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// parseRemote reads the name of a remote engine.
func parseRemote(name string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(name)
	if err != nil || at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast() {
		return at, invalid("remote engine %q, allowed: ip:port or [ipv6]:port", clip(name))
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// checkAddress refuses endpoints of which none is the local engine's.
func (o *Options) checkAddress(ip netip.Addr) error {
	if o.CommRes == nil {
		return nil
	}
	for i := range o.CommRes.Endpoints {
		x := &o.CommRes.Endpoints[i]
		if a, err := netip.ParseAddr(x.CommID); err == nil && x.usable() && a.Unmap() == ip {
			return nil
		}
	}
	return unsupported("option %s: no endpoint with protocol roce and placement host has comm_id %v: data and control use one address", OptionLocalCommRes, ip)
}

// peers is what the options mean for the context.
func (o *Options) peers() hixl.PeerConfig {
	r := &o.Resources
	cfg := hixl.PeerConfig{
		Connect:  hixl.ConnectOptions{TrafficClass: o.TrafficClass, Timeout: o.Timeout, Retries: o.Retries},
		Recovery: hixl.RecoveryConfig{Off: true}, // a link that has failed stays so until it is connected anew
	}
	if o.AutoConnect {
		cfg.KeepAlive = autoHeartbeat
	}
	if r.HighWaterline > 0 {
		most := float64(maxLinks)
		if r.MaxChannel > 0 {
			most = float64(r.MaxChannel)
		}
		cfg.IdleAfter = waits.idle
		cfg.HighWater = max(1, int(r.HighWaterline*most))
		if cfg.LowWater = int(r.LowWaterline * most); cfg.LowWater == 0 {
			cfg.LowWater = hixl.None
		}
	}
	return cfg
}

// Options returns what the option strings were understood as.
func (e *Engine) Options() Options { return *e.opts }

// Context returns the context below, whose NIC, regions and counters others may use
// as well. Its peers are the engine's.
func (e *Engine) Context() *hixl.Context { return e.c }

// Finalize ends all links, who are told, and all registrations. What is outstanding
// fails. Memory may be freed when it has returned. Calls that follow fail with
// [StatusFailed]; to finalize twice is fine.
func (e *Engine) Finalize() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		e.wg.Wait()
		return
	}
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.dir.close()
	_ = e.c.Close() // sockets that do not close in order are closed all the same
	e.wg.Wait()
}

// errFinalized is why calls fail after Finalize.
var errFinalized = fmt.Errorf("%w: the engine was finalized", hixl.ErrClosed)

// open refuses what comes after Finalize.
func (e *Engine) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.openLocked()
}

func (e *Engine) openLocked() error {
	if e.closed {
		return errFinalized
	}
	return nil
}

// limited gives a context the default deadline if it has none.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, waits.call)
}
