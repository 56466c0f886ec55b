package hixl

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/cm"
)

// CQ is a completion queue. Poll takes what is there, Wait blocks until there is
// something.
type CQ = cq.Queue

// NIC is a software RDMA NIC on one address. All methods may be called from any
// goroutine.
type NIC struct {
	nic     *nic.NIC
	cm      *connmgr.Manager
	stepped bool

	mu    sync.Mutex
	owned map[*Region]struct{} // of Alloc, not deregistered; guarded by mu
}

// OpenNIC opens a NIC. Whoever opens it closes it. The error is a
// *transport.OpenError when the address cannot be used, with the likely owner of
// UDP port 4791 when it is taken; or one that unwraps to [ErrConfig],
// transport.ErrConfig or roce.ErrMTU.
func OpenNIC(cfg Config) (*NIC, error) {
	mtu, err := cfg.mtu()
	if err != nil {
		return nil, err
	}
	conn, err := cfg.open()
	if err != nil {
		return nil, err
	}
	n, err := nic.Open(nic.Config{
		Conn: conn, Clock: cfg.Clock, MTU: mtu, MaxQPs: cfg.MaxQPs, MaxRegions: cfg.regions(), Events: cfg.Events,
		PathWindow: cfg.PathWindow, NoECN: cfg.NoECN, NoTrains: cfg.NoTrains, NoICRCCheck: cfg.NoICRCCheck, Progress: cfg.Progress, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m, err := connmgr.New(connmgr.Config{NIC: n})
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if !cfg.Stepped {
		n.Start()
	}
	return &NIC{nic: n, cm: m, stepped: cfg.Stepped, owned: make(map[*Region]struct{})}, nil
}

// Address returns the NIC's IP address, without zone.
func (n *NIC) Address() netip.Addr { return n.nic.Addr() }

// MTU returns the largest path MTU of its queue pairs, in bytes.
func (n *NIC) MTU() int { return n.nic.MTU().Bytes() }

// Stats returns the counters.
func (n *NIC) Stats() Stats { return n.nic.Stats() }

// Events delivers asynchronous events. When nobody takes them, they are dropped
// and counted in Stats.
func (n *NIC) Events() <-chan Event { return n.nic.Events() }

// AllocPD makes a protection domain. Its Dealloc is optional.
func (n *NIC) AllocPD() *PD { return &PD{nic: n, pd: n.nic.AllocPD()} }

// CreateCQ makes a completion queue for up to capacity completions, 1 to
// 1,048,576: as many as can be outstanding on its queue pairs.
func (n *NIC) CreateCQ(capacity int) (*CQ, error) {
	q, err := cq.New(capacity)
	if err != nil {
		return nil, err
	}
	if !n.stepped {
		q.SetDriver(n.nic.NewDriver())
	}
	return q, nil
}

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	// MaxWR is the number of receives that can wait, 1..32,768, default 1024.
	MaxWR int
	// MaxSGE is the number of entries of a receive, 1..32, default 4.
	MaxSGE int
}

// CreateSRQ makes a shared receive queue. Its limit event comes from Events.
func (n *NIC) CreateSRQ(pd *PD, cfg SRQConfig) (*SRQ, error) {
	if pd == nil {
		return nil, &nic.ConfigError{Field: "pd", Value: "missing", Allowed: "a protection domain of the NIC, from AllocPD"}
	}
	return qp.NewSRQ(qp.SRQConfig{PD: pd.pd, MaxWR: cfg.MaxWR, MaxSGE: cfg.MaxSGE, Events: n.nic.EventQueue()})
}

// Poll lets a stepped NIC do what there is to do at now and reports whether there
// was anything.
func (n *NIC) Poll(now mono.Time) bool { return n.nic.Poll(now) }

// Next returns when a stepped NIC wants to be polled if no packet comes before; 0
// is never.
func (n *NIC) Next() mono.Time { return n.nic.Next() }

// ConnStats counts what the connection manager has seen, and what it holds.
type ConnStats struct {
	cm.Stats
	cm.Usage
	// HeldQPNs is how many queue pair numbers belong to connections, or rest.
	HeldQPNs int
}

// ConnStats returns the counters of connection management.
func (n *NIC) ConnStats() ConnStats {
	var s ConnStats
	s.Stats, s.Usage = n.cm.Stats()
	s.HeldQPNs, _ = n.nic.HeldQPNs(0)
	return s
}

// closeWait is how long Close waits for transfers of memory it is about to free.
const closeWait = time.Second

// Close ends connections and tells their peers, once, flushes all queue pairs,
// frees the address and the memory of [PD.Alloc], and waits for the NIC's
// goroutines. Completion queues stay: what is in them can be taken. Peers joined
// by [QP.Connect] are not told, and find it silent. Closing twice is fine.
func (n *NIC) Close() error {
	n.mu.Lock()
	owned := n.owned
	n.owned = nil
	n.mu.Unlock()
	n.cm.Close()
	err := n.nic.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	for r := range owned {
		if e := r.Deregister(ctx); e != nil {
			err = errors.Join(err, fmt.Errorf("hixl: freeing memory of a region at close: %w", e))
		}
	}
	return err
}
