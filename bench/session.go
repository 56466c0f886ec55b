package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// session is a peer and this side's endpoint, connected by control.
type session struct {
	*control
	ep   *endpoint
	peer *welcome
	mode string
	// local is this end of the control connection, of a remote peer.
	local netip.Addr
	// stop ends the peer, whatever runs it.
	stop func()
	nets isolation
}

// startSession starts or reaches the peer and opens both NICs. The context that
// it returns ends with the peer's death as its cause.
func startSession(ctx context.Context, cfg Config) (*session, context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s, err := reachPeer(ctx, cfg, cancel)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	s.nets.server = cfg.placed.peer()
	stopPeer := s.stop
	s.stop = func() {
		stopPeer()
		cancel(nil)
	}
	if err := s.open(ctx, cfg); err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	return s, ctx, nil
}

func reachPeer(ctx context.Context, cfg Config, died func(error)) (*session, error) {
	switch {
	case cfg.Peer != "":
		return dialPeer(ctx, cfg)
	case cfg.InProcess:
		return pairPeer(ctx, cfg), nil
	}
	var c *child
	start := func() (*child, error) { return startChild(cfg.PeerCommand, cfg.PeerLocal, died) }
	var err error
	if cfg.PeerStart != nil {
		err = cfg.PeerStart(func() (err error) {
			c, err = start()
			return err
		})
	} else {
		c, err = stayingThread(start)
	}
	if err != nil {
		return nil, err
	}
	return &session{control: c.control(), mode: modeProcesses, stop: c.stop}, nil
}

// pairPeer runs the peer in a goroutine of this process.
func pairPeer(ctx context.Context, cfg Config) *session {
	here, there := net.Pipe()
	var gone sync.WaitGroup
	gone.Go(func() {
		defer there.Close()
		_ = cfg.Carrier.ServePeer(ctx, there, there, netip.Addr{}) // its errors reach us as answers, or as the end of the pipe
	})
	return &session{
		control: &control{wire: newWire(here, here), hangUp: func() { _ = here.Close() }},
		mode:    modeInProcess,
		stop: func() {
			_ = here.Close()
			gone.Wait()
		},
	}
}

// dialPeer reaches a listening peer.
func dialPeer(ctx context.Context, cfg Config) (*session, error) {
	addr := cfg.Peer
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, strconv.Itoa(DefaultPort))
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bench: reaching the peer, does `hixl-bench --serve` run there? %w", err)
	}
	return &session{
		control: &control{wire: newWire(conn, conn), hangUp: func() { _ = conn.Close() }, note: cfg.Note},
		mode:    modeRemote, stop: func() { _ = conn.Close() },
		local: conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(),
	}, nil
}

// open opens this side's NIC and the peer's.
func (s *session) open(ctx context.Context, cfg Config) error {
	local := cfg.Local
	if !local.IsValid() {
		local = s.local
	}
	ep, err := openEndpoint(local, cfg.Memory, cfg.Region, nicOptions{carrier: cfg.Carrier, faults: cfg.Faults, seed: mix(cfg.Seed + 1), noTrains: cfg.NoTrains, shards: cfg.Shards, lowLatency: cfg.LowLatency})
	if err != nil {
		return err
	}
	s.ep = ep
	resp, err := s.call(ctx, &request{Do: doHello, Hello: &hello{
		Version: protocolVersion, From: ep.nic.Address(), Local: cfg.PeerLocal, Memory: cfg.PeerMemory, Region: cfg.Region, Seed: cfg.Seed, Faults: cfg.Faults,
		NoTrains: cfg.NoTrains, Shards: cfg.Shards, LowLatency: cfg.LowLatency, Cores: cfg.placed.peer(),
	}})
	if err != nil {
		return err
	}
	if resp.Welcome == nil {
		return &PeerError{Err: errors.New("answered without its memory")}
	}
	s.peer = resp.Welcome
	if cfg.PeerMemory != "" && cfg.PeerMemory != HostMemory && s.peer.Memory == "" {
		return &PeerError{Addr: s.peer.Addr, Err: errors.New("knows no memory but the host's: run the same hixl-bench on both sides")}
	}
	return sameFamily(ep.nic.Address(), s.peer.Addr)
}

// sameFamily refuses two RoCE addresses that cannot reach each other.
func sameFamily(local, peer netip.Addr) error {
	if local.Is4() == peer.Is4() {
		return nil
	}
	return &FlagError{
		Flag: "local", Given: fmt.Sprintf("%v, with a peer at %v", local, peer), Allowed: "RoCE addresses of one family, IPv4 or IPv6, on both sides",
		Do: "give --local of the peer's family here, or start the peer with --serve --local and an address of this one's",
	}
}

// usage is what both processes and both NICs have spent.
func (s *session) usage(ctx context.Context) (usage, error) {
	resp, err := s.call(ctx, &request{Do: doUsage})
	if err != nil {
		return usage{}, err
	}
	if resp.Usage == nil {
		return usage{}, &PeerError{Addr: s.peer.Addr, Err: errors.New("answered without its usage")}
	}
	here, there := s.ep.usage(), *resp.Usage
	if s.mode == modeInProcess {
		there.CPU, there.Mallocs, there.Strain = 0, 0, Strain{} // the same process
	}
	return here.add(there), nil
}

// cpu is the processor time of both processes. Unlike usage it asks no queue pair:
// to do so for a thousand is more than they do by themselves.
func (s *session) cpu(ctx context.Context) (time.Duration, error) {
	resp, err := s.call(ctx, &request{Do: doCPU})
	if err != nil {
		return 0, err
	}
	if resp.Usage == nil {
		return 0, &PeerError{Addr: s.peer.Addr, Err: errors.New("answered without its processor time")}
	}
	if s.mode == modeInProcess {
		return processCPU(), nil
	}
	return processCPU() + resp.Usage.CPU, nil
}

// deathLag is how long news of a child's death may come after the broken
// connections that it leaves.
const deathLag = 5 * time.Second

// why is the reason behind an error of a round: a child's death, if that is what
// broke things.
func (s *session) why(ctx context.Context, err error) error {
	if s.mode != modeProcesses || errors.Is(err, ErrVerify) {
		return err
	}
	select {
	case <-ctx.Done():
		return explain(ctx, err)
	case <-time.After(deathLag):
		return err
	}
}

// close ends the session: this side's NIC first, then the peer.
func (s *session) close() error {
	var err error
	if s.ep != nil {
		err = s.ep.close()
	}
	s.nets.close()
	s.stop()
	return err
}
