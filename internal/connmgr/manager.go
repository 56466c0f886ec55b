package connmgr

import (
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"sync"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/cm"
)

// Settings of the agent that differ from its defaults.
const (
	// firstRetry is when an unanswered message is sent again for the first time;
	// Linux waits 4 s (C12).
	firstRetry = 500 * time.Millisecond
	// maxReads is how many READs and atomics a connection may ask for.
	maxReads = qp.MaxReads
)

// lastSends bounds the tries to send what Close has to say.
const lastSends = 1000

// sendQueue is the depth of QP1's send queue: a round of sends.
const sendQueue = 256

// Config describes a manager.
type Config struct {
	NIC *nic.NIC
	// Rand returns 64 random bits; nil is the system's cryptographic source.
	Rand func() uint64
}

// Manager is the connection management of one NIC. Its methods may be called from
// any goroutine.
type Manager struct {
	nic   *nic.NIC
	gsi   *nic.Queue
	inbox *inbox

	run     runState
	mu      sync.Mutex
	agent   *cm.Agent // guarded by mu, as all below
	serving map[cm.ServiceID]Handler
	handler map[cm.CommID]Handler
	closed  error // why it is; nil while it is not
}

// New makes QP1 and attaches the manager to the NIC, which must not have another.
func New(cfg Config) (*Manager, error) {
	n := cfg.NIC
	random := cfg.Rand
	if random == nil {
		random = systemRandom
	}
	agent, err := cm.NewAgent(cm.Config{
		Addr: n.Addr(), CAGUID: GUID(n.Addr()), Rand: random, MTU: n.MTU(), MaxReads: maxReads, FirstRetry: firstRetry,
	})
	if err != nil {
		return nil, err
	}
	m := &Manager{nic: n, agent: agent, serving: make(map[cm.ServiceID]Handler), handler: make(map[cm.CommID]Handler)}
	if err := m.open(); err != nil {
		return nil, err
	}
	n.Attach(m)
	return m, nil
}

// open makes QP1, ready to receive and send.
func (m *Manager) open() (err error) {
	pd := m.nic.AllocPD()
	if m.inbox, err = newInbox(m.nic, pd); err != nil {
		return err
	}
	m.gsi, err = m.nic.CreateQP(qp.Config{
		Type: qp.GSI, PD: pd, SendSink: sent{}, RecvSink: m.inbox,
		MaxSendWR: sendQueue, MaxRecvWR: inboxSlots, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: cm.MADLen,
	})
	if err != nil {
		return err
	}
	if err = m.start(); err != nil {
		m.gsi.Close()
	}
	return err
}

func (m *Manager) start() error {
	if err := m.gsi.Modify(&qp.Attr{State: qp.Init}, qp.MaskState|qp.MaskPKeyIndex|qp.MaskQKey); err != nil {
		return err
	}
	if err := m.receive(0, firstSlots); err != nil {
		return err
	}
	if err := m.gsi.Modify(&qp.Attr{State: qp.RTR}, qp.MaskState); err != nil {
		return err
	}
	return m.gsi.Modify(&qp.Attr{State: qp.RTS}, qp.MaskState|qp.MaskSendPSN)
}

// receive makes slots from, up to but not including to, receive.
func (m *Manager) receive(from, to uint64) error {
	for slot := from; slot < to; slot++ {
		var sge [1]mr.SGE
		if err := m.gsi.PostRecv([]qp.RecvWR{m.inbox.receive(slot, sge[:])}); err != nil {
			return err
		}
	}
	return nil
}

func systemRandom() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint64(b[:])
}

// Deadline implements nic.Service.
func (m *Manager) Deadline() mono.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		return 0
	}
	return mono.Earliest(m.agent.Deadline(), m.run.retry)
}

// Stats returns what the agent has counted, and what it holds now.
func (m *Manager) Stats() (cm.Stats, cm.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agent.Stats(), m.agent.Usage()
}

// Later has f run by the NIC's service goroutine, like a handler. It may be called
// with any lock held.
func (m *Manager) Later(f func(now mono.Time)) {
	m.inbox.mu.Lock()
	m.inbox.later = append(m.inbox.later, f)
	m.inbox.mu.Unlock()
	m.nic.Wake()
}

// Close ends every connection, telling the peers, and tells every handler. The NIC
// must be open still.
func (m *Manager) Close() {
	m.run.Lock()
	defer m.run.Unlock()
	m.shut(nic.ErrClosed)
}

// shut is the one place where the manager closes. The run lock is held.
func (m *Manager) shut(why error) {
	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		return
	}
	m.closed = why
	m.agent.Shutdown(m.nic.Now())
	told := make(map[Handler]struct{})
	for _, h := range m.serving {
		told[h] = struct{}{}
	}
	for _, h := range m.handler {
		told[h] = struct{}{}
	}
	clear(m.serving)
	clear(m.handler)
	m.mu.Unlock()
	for h := range told {
		h.Closed(why) // which ends the queue pairs
	}
	for range lastSends {
		m.send(m.nic.Now())
		switch {
		case len(m.run.sends) > 0:
			runtime.Gosched() // somebody else is sending what fills the queue
			continue
		case len(m.run.held) > 0 && m.nic.Pause():
			continue
		}
		break
	}
	m.run.held = nil // who is not told knows nothing, which is the truth
	m.gsi.Close()
	_ = m.inbox.close() // nothing is lent any more
}
