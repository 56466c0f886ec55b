package qp

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/wr"
)

// Limits and defaults of a queue pair.
const (
	// MaxWR is the largest size of a send or receive queue, in work requests.
	MaxWR = 1 << 15
	// DefaultWR is the size of a queue that is not given.
	DefaultWR = 128
	// MaxSGE is the largest number of scatter/gather entries of a work request.
	MaxSGE = 32
	// DefaultSGE is that number when it is not given.
	DefaultSGE = 4
	// MaxInline is the largest payload that is copied when it is posted.
	MaxInline = rc.MaxInline
)

// Config describes a queue pair. Fields without a default must be given.
type Config struct {
	// Type is RC, UC, UD or GSI.
	Type Type
	// QPN is the queue pair's number, Local the address it sends from.
	QPN   roce.QPN
	Local netip.Addr
	// PD resolves local keys of work requests and remote keys of the peer's.
	PD *mr.PD
	// SendSink and RecvSink take the completions of sends and receives.
	SendSink, RecvSink cq.Sink
	// SRQ, if not nil, takes the place of the queue pair's own receive queue.
	SRQ *SRQ
	// MaxSendWR and MaxRecvWR size the queues, 1..[MaxWR], default [DefaultWR].
	// Their memory is taken at the first post.
	MaxSendWR, MaxRecvWR int
	// MaxSendSGE and MaxRecvSGE bound the entries of a work request, 1..[MaxSGE],
	// default [DefaultSGE].
	MaxSendSGE, MaxRecvSGE int
	// MaxInline bounds inline data in bytes, 0..[MaxInline].
	MaxInline int
	// SignalAll makes every send request signaled.
	SignalAll bool
	// MaxMTU is the largest path MTU of the link, default 4096.
	MaxMTU roce.PathMTU
	// MaxWindow bounds the window of a reliable connection in bytes; 0 does not.
	MaxWindow int
	// MaxPending bounds the peer's packets whose bytes are on their way into
	// memory; 0 means the default of package roce/rc.
	MaxPending int
	// Events takes asynchronous events; nil drops them.
	Events *EventQueue
	// Watch, if not nil, is told what a connection manager must know:
	// [EventCommEst] at the peer's first request, in RTS too, and [EventQPFatal]
	// when the queue pair has gone to the error state by itself, also where a
	// completion tells. It is called under the lock and must neither block nor
	// call the queue pair.
	Watch func(Event)
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

func (c *Config) fill() {
	c.MaxSendWR, c.MaxRecvWR = orDefault(c.MaxSendWR, DefaultWR), orDefault(c.MaxRecvWR, DefaultWR)
	c.MaxSendSGE, c.MaxRecvSGE = orDefault(c.MaxSendSGE, DefaultSGE), orDefault(c.MaxRecvSGE, DefaultSGE)
	if c.SRQ != nil {
		c.MaxRecvSGE = c.SRQ.cfg.MaxSGE
	}
	if c.MaxMTU == 0 {
		c.MaxMTU = roce.MTU4096
	}
}

func (c *Config) check() error {
	if c.Type >= numTypes {
		return &ConfigError{"Type", c.Type, "RC, UC, UD or GSI"}
	}
	if c.Type == GSI && c.QPN != roce.QPNGSI {
		return &ConfigError{"QPN", c.QPN, "1, the number of the general services interface"}
	}
	if c.PD == nil {
		return &ConfigError{"PD", "missing", "a protection domain"}
	}
	if c.SendSink == nil || c.RecvSink == nil {
		return &ConfigError{"SendSink, RecvSink", "missing", "where completions of sends and of receives go, which may be one queue"}
	}
	if !c.MaxMTU.Valid() {
		return &ConfigError{"MaxMTU", c.MaxMTU, "256 to 4096"}
	}
	for _, f := range [...]struct {
		name           string
		value, lo, top int
	}{
		{"QPN", int(c.QPN), 1, int(roce.QPNMulticast) - 1},
		{"MaxSendWR", c.MaxSendWR, 1, MaxWR},
		{"MaxRecvWR", c.MaxRecvWR, 1, MaxWR},
		{"MaxSendSGE", c.MaxSendSGE, 1, MaxSGE},
		{"MaxRecvSGE", c.MaxRecvSGE, 1, MaxSGE},
		{"MaxInline", c.MaxInline, 0, MaxInline},
		{"MaxPending", c.MaxPending, 0, rc.MaxPending},
	} {
		if f.value < f.lo || f.value > f.top {
			return &ConfigError{f.name, f.value, fmt.Sprintf("%d to %d", f.lo, f.top)}
		}
	}
	return nil
}

// QP is a queue pair. Methods whose comment says "locked" are the NIC's, and are
// called between Lock and Unlock; all others may be called from any goroutine.
type QP struct {
	cfg  Config // set once
	view atomic.Pointer[View]

	mu    sync.Mutex
	state State  // guarded by mu, as all below
	attr  Attr   // as far as given
	gen   uint32 // counts RESETs: what was begun under an older one no longer counts
	gone  bool

	engine engine // nil in RESET and INIT
	rc     *rc.RC // the same, if the queue pair is reliable
	recv   recvRing
	spans  []mr.Span // scratch of posting
	req    wr.Request
	copied []byte // of posting inline, MaxInline long; made at the first

	draining, dirty bool
	done            completions

	commEst   bool // raised
	sqNotify  bool // SQ_DRAINED is to be raised
	announced bool // the error state has been dealt with
	flushed   bool // the receive queue is empty for good
}

// New makes a queue pair in RESET, or returns a *[ConfigError] or
// mr.ErrPDClosed. The domain and the shared receive queue are in use until Close.
func New(cfg Config) (*QP, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := cfg.PD.Retain(); err != nil {
		return nil, err
	}
	if cfg.SRQ != nil {
		if err := cfg.SRQ.retain(); err != nil {
			cfg.PD.Release()
			return nil, err
		}
	}
	q := &QP{cfg: cfg, recv: recvRing{limit: cfg.MaxRecvWR, sge: cfg.MaxRecvSGE}}
	q.spans = make([]mr.Span, 0, cfg.MaxSendSGE)
	q.updateView()
	return q, nil
}

// QPN returns the queue pair's number.
func (q *QP) QPN() roce.QPN { return q.cfg.QPN }

// Config returns what the queue pair was made from, defaults filled in.
func (q *QP) Config() Config { return q.cfg }

// State returns the state now.
func (q *QP) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now()
}

// now is the state, with an error of the engine taken into account at once.
func (q *QP) now() State {
	if q.engine != nil && q.engine.Failed() {
		return Err
	}
	return q.state
}

// Query returns the attributes as far as they were given, and the state.
func (q *QP) Query() Attr {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.attr
	a.State = q.now()
	a.CurState = a.State
	return a
}

// Stats returns what the engine of a reliable connection counted since RESET, zero
// before INIT→RTR.
func (q *QP) Stats() rc.Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rc == nil {
		return rc.Stats{}
	}
	return q.rc.Stats()
}

// Cause says why the queue pair is in the error state.
func (q *QP) Cause() rc.Cause {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.engine == nil {
		return rc.Cause{}
	}
	return q.engine.Cause()
}

// Outstanding returns the number of send requests without completion, and of
// receives that wait in the queue pair's own queue.
func (q *QP) Outstanding() (sends, receives int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.engine != nil {
		sends = q.engine.Outstanding()
	}
	return sends, q.recv.len()
}

// Trim gives back the memory that queues of a reliable connection have grown to
// and do not use now. The next work takes it anew, so this is for a queue pair that
// has been idle for long.
func (q *QP) Trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rc != nil {
		q.rc.Trim()
		q.done.trim()
		q.copied = nil
	}
}

// Close frees the queue pair: as RESET, completions that are not given yet are
// dropped, and it cannot be used again. Closing twice is fine.
func (q *QP) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
}

// Shut is Close after everything that can be flushed has been, whoever drains
// now: nobody waits for a completion that never comes. Only work whose bytes are
// still on their way into late memory has none.
func (q *QP) Shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone && q.state != Reset {
		q.fail()
		for len(q.engine.Completions()) > 0 || !q.done.empty() || q.recv.len() > 0 && q.engine.Idle() {
			q.Collect(0, true)
			q.Publish(everyDrain)
		}
	}
	q.close()
}

// everyDrain is newer than any.
const everyDrain = ^uint64(0)

func (q *QP) close() {
	if q.gone {
		return
	}
	q.reset()
	q.gone = true
	if q.cfg.SRQ != nil {
		q.cfg.SRQ.release()
	}
	q.cfg.PD.Release()
}

// reset forgets everything but the number (§3.17).
func (q *QP) reset() {
	q.state, q.attr, q.engine, q.rc = Reset, Attr{}, nil, nil
	q.gen++
	q.recv.reset()
	q.done.reset()
	q.commEst, q.sqNotify, q.announced, q.flushed = false, false, false, false
	q.updateView()
}

// View is what is needed of a queue pair to judge a packet without its lock. It
// never changes; a queue pair changes by getting a new one.
type View struct {
	State    State
	Type     Type
	PKey     uint16
	Peer     netip.Addr
	DestQPN  roce.QPN
	SmallIDs bool
	// Requests and Responses say which packets the state takes (§1.13).
	Requests, Responses bool
	// FlowLabel and TrafficClass mark what is sent.
	FlowLabel    uint32
	TrafficClass uint8
	// Gen is the generation of [QP.Gen].
	Gen uint32
}

// View returns the newest view. It takes no lock.
func (q *QP) View() *View { return q.view.Load() }

func (q *QP) updateView() {
	s := q.now()
	v := &View{
		State: s, Type: q.cfg.Type, Requests: rules[s].requests, Responses: rules[s].responses, PKey: DefaultPKey, Gen: q.gen,
		Peer: q.attr.AV.Addr, DestQPN: q.attr.DestQPN, SmallIDs: q.attr.AV.SmallIDs,
		FlowLabel: q.attr.AV.FlowLabel, TrafficClass: q.attr.AV.TrafficClass,
	}
	q.view.Store(v)
}

// DefaultPKey is the one P_Key there is, the default partition with full
// membership.
const DefaultPKey = 0xFFFF
