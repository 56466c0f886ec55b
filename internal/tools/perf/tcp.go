package perf

import (
	"context"
	"time"

	"github.com/gohixl/hixl/internal/tools"
)

// runTCP runs a test whose exchange goes over TCP.
func runTCP(ctx context.Context, cfg *Config) (*Result, error) {
	meet := tools.Dial
	if !cfg.Client() {
		meet = tools.Accept
		cfg.Printf("%s", waiting)
	}
	conn, err := meet(ctx, &cfg.Common)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	dev, err := openDevice(cfg, conn.Local())
	if err != nil {
		return nil, err
	}
	s := newTCPSession(cfg, conn, dev)
	if err := dev.close(s.run(ctx)); err != nil {
		return nil, err
	}
	return &s.res, nil
}

func newTCPSession(cfg *Config, conn *tools.Conn, dev *device) *session {
	return &session{
		cfg: cfg, ctl: control{link: conn, client: cfg.Client(), text: true}, plug: tcpPlug{conn}, dev: dev, drive: move,
	}
}

// tcpPlug connects by what the address lines say.
type tcpPlug struct{ conn *tools.Conn }

func (p tcpPlug) wire(_ context.Context, s *session) error { return s.dev.createQPs(s.cfg) }

func (p tcpPlug) join(s *session) error { return s.dev.connect(s.cfg, s.terms.mtu, s.theirs) }

func (p tcpPlug) leave(ctx context.Context, s *session, word bool) error {
	if word {
		return s.ctl.part(ctx)
	}
	// The peer closes its connection when it has all it needs. Until then the NIC
	// answers it, in case an ACK was lost.
	ctx, cancel := context.WithTimeout(ctx, lingering(s.cfg.Timeout))
	defer cancel()
	p.conn.Finish(ctx)
	return nil
}

// lingering is how long a peer may take to ask for a lost ACK, for an ACK timeout
// exponent: the timeout and all its retries.
func lingering(timeout int) time.Duration {
	return min(8*(4096*time.Nanosecond<<timeout), 10*time.Second)
}
