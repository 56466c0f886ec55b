package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/gohixl/hixl"
)

// Coalesce is the name of [RunCoalesce] among operations on the command line.
const Coalesce = "coalesce"

// Ways to move many small messages, as reports call them.
const (
	wayPlain      = "plain"      // signaled writes, many outstanding
	wayUnsignaled = "unsignaled" // each a work request of its own
	wayCoalesced  = Coalesce     // gathered
	wayTCP        = "tcp"        // one write a message
)

var coalesceWays = [...]string{wayPlain, wayUnsignaled, wayCoalesced, wayTCP}

// Sizes of the comparison.
const (
	coalesceSize  = 64
	coalesceDepth = 64 // plain writes outstanding
	coalesceArea  = 64 << 10
)

// CoalesceReport compares ways to move 64-byte messages to a peer.
type CoalesceReport struct {
	Size     int              `json:"size"`
	Rounds   int              `json:"rounds"`
	Duration string           `json:"duration"`
	Mode     string           `json:"mode"`
	Machine  string           `json:"machine"`
	Local    string           `json:"local"`
	Peer     string           `json:"peer"`
	Seed     uint64           `json:"seed"`
	Results  []CoalesceResult `json:"results"`
	Ratios   []CoalesceRatio  `json:"ratios"`
}

// CoalesceResult is one way, the median of the rounds.
type CoalesceResult struct {
	Op       string  `json:"op"`
	MsgsPerS float64 `json:"msgs_per_s"`
	Verified bool    `json:"verified"`
}

// CoalesceRatio is the messages per second of one way against another's, round by
// round.
type CoalesceRatio struct {
	Op      string  `json:"op"`
	Size    int     `json:"size"`
	Against string  `json:"against"`
	Median  float64 `json:"median"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Rounds  int     `json:"rounds"`
}

// RunCoalesce measures signaled, unsignaled and gathered writes of a context, and
// TCP, in messages per second, round by round. Of cfg it uses Duration, Rounds,
// Seed, Local and PeerLocal; both ends are in this process. The bytes of each part are
// verified; a *[MismatchError] is the end of the run.
func RunCoalesce(ctx context.Context, cfg Config) (_ *CoalesceReport, err error) {
	cfg = cfg.withDefaults()
	m, err := newCoalesceMover(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	slice := max(cfg.Duration/time.Duration(cfg.Rounds), minSlice)
	rates := map[string][]float64{}
	for n := range cfg.Rounds {
		for _, way := range coalesceWays {
			rate, err := m.measure(ctx, way, slice, n)
			if err != nil {
				return nil, &CellError{Op: way, Size: coalesceSize, Err: explain(ctx, err)}
			}
			rates[way] = append(rates[way], rate)
		}
	}
	r := &CoalesceReport{
		Size: coalesceSize, Rounds: cfg.Rounds, Duration: cfg.Duration.String(), Mode: modeInProcess,
		Machine: Machine(), Local: cfg.Local.String(), Peer: cfg.PeerLocal.String(), Seed: cfg.Seed,
	}
	for _, way := range coalesceWays {
		r.Results = append(r.Results, CoalesceResult{Op: way, MsgsPerS: median(rates[way]), Verified: true})
	}
	for _, x := range [][2]string{{wayUnsignaled, wayPlain}, {wayCoalesced, wayPlain}, {wayCoalesced, wayUnsignaled}, {wayPlain, wayTCP}, {wayCoalesced, wayTCP}} {
		r.Ratios = append(r.Ratios, coalesceRatio(x[0], x[1], rates[x[0]], rates[x[1]]))
	}
	return r, nil
}

func coalesceRatio(op, against string, a, b []float64) CoalesceRatio {
	q := make([]float64, len(a))
	for i := range a {
		q[i] = a[i] / b[i]
	}
	r := CoalesceRatio{Op: op, Size: coalesceSize, Against: against, Median: median(q), Min: q[0], Max: q[0], Rounds: len(q)}
	for _, v := range q {
		r.Min, r.Max = min(r.Min, v), max(r.Max, v)
	}
	return r
}

// WriteJSON writes the report as one JSON object.
func (r *CoalesceReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for people.
func (r *CoalesceReport) WriteTable(w io.Writer) error {
	head := headline(r.Local, r.Peer, r.Mode, r.Machine)
	if _, err := fmt.Fprintf(w, "%ssize %s, %s, %s a way, seed %d\n\n", head, formatSize(r.Size), plural(r.Rounds, "round"), r.Duration, r.Seed); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format, args...) } // Flush tells
	line("way\tmessages/s\t\n")
	for _, x := range r.Results {
		line("%s\t%.0f\t\n", x.Op, x.MsgsPerS)
	}
	line("\t\t\n")
	for _, x := range r.Ratios {
		line("%s / %s\t%.2f\t(%.2f..%.2f)\t\n", x.Op, x.Against, x.Median, x.Min, x.Max)
	}
	return t.Flush()
}

// coalesceMover has both ends of each way.
type coalesceMover struct {
	from, to *hixl.Context
	peer     *hixl.Peer
	src, dst *hixl.Region
	remote   *hixl.RemoteRegion
	tcp      *tcpSink
	seed     uint64
}

func newCoalesceMover(ctx context.Context, cfg Config) (m *coalesceMover, err error) {
	m = &coalesceMover{seed: cfg.Seed}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	local := cfg.Local
	if !local.IsValid() {
		local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	peer := cfg.PeerLocal
	if !peer.IsValid() {
		peer = local.Next()
	}
	peers := hixl.PeerConfig{QPs: 1, SendQueue: 1024}
	if m.from, err = hixl.Open(hixl.Config{Address: local, Peers: peers}); err != nil {
		return m, err
	}
	if m.to, err = hixl.Open(hixl.Config{Address: peer, Peers: peers}); err != nil {
		return m, err
	}
	l, err := m.to.Listen(ctx, ":0")
	if err != nil {
		return m, err
	}
	if m.peer, err = m.from.Dial(ctx, l.Addr().String()); err != nil {
		return m, err
	}
	if m.src, err = m.from.Alloc(coalesceArea, hixl.LocalWrite); err != nil {
		return m, err
	}
	if m.dst, err = m.to.Alloc(coalesceArea, hixl.LocalWrite|hixl.RemoteWrite); err != nil {
		return m, err
	}
	if m.remote, err = m.peer.Import(m.to.Describe(m.dst)); err != nil {
		return m, err
	}
	m.tcp, err = newTCPSink(local)
	return m, err
}

func (m *coalesceMover) close() (err error) {
	for _, c := range []*hixl.Context{m.from, m.to} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if m.tcp != nil {
		err = errors.Join(err, m.tcp.close())
	}
	return err
}

// measure runs one way for a time, warmed up, and verifies what it moved.
func (m *coalesceMover) measure(ctx context.Context, way string, d time.Duration, round int) (float64, error) {
	for i := 0; i < coalesceArea; i += 8 {
		binary.LittleEndian.PutUint64(m.src.Bytes()[i:], m.seed+uint64(i)*0x9E3779B97F4A7C15+uint64(round)*31+uint64(len(way)))
	}
	clear(m.dst.Bytes())
	move := map[string]func(context.Context, time.Duration) (uint64, error){
		wayPlain: m.plain, wayUnsignaled: m.unsignaled, wayCoalesced: m.coalesced, wayTCP: m.overTCP,
	}[way]
	run := func(ctx context.Context, d time.Duration) (uint64, error) {
		n, err := move(ctx, d)
		return n, cmp.Or(err, ctx.Err()) // one that was cut short may have flushed all the same
	}
	if _, err := run(ctx, d/10); err != nil {
		return 0, err
	}
	began := time.Now()
	n, err := run(ctx, d)
	took := time.Since(began)
	if err != nil || way == wayTCP {
		return float64(n) / took.Seconds(), err
	}
	for i := range min(n*coalesceSize, coalesceArea) {
		if m.src.Bytes()[i] != m.dst.Bytes()[i] {
			return 0, &MismatchError{Op: way, Size: coalesceSize, Round: round, Detail: fmt.Sprintf("byte %d is %#x, wanted %#x", i, m.dst.Bytes()[i], m.src.Bytes()[i])}
		}
	}
	return float64(n) / took.Seconds(), nil
}

// desc is message n.
func (m *coalesceMover) desc(n uint64) hixl.Desc {
	at := n * coalesceSize % coalesceArea
	return hixl.Desc{Local: m.src, LocalOff: at, Remote: m.remote, RemoteOff: at, Len: coalesceSize}
}

// lookEvery is how many messages go between two looks at the clock.
const lookEvery = 256

// lasts reports whether message n still belongs to a run that ends at a time, or with
// ctx.
func lasts(ctx context.Context, n uint64, end time.Time) bool {
	return n%lookEvery != 0 || time.Now().Before(end) && ctx.Err() == nil
}

func (m *coalesceMover) plain(ctx context.Context, d time.Duration) (n uint64, err error) {
	var window [coalesceDepth]*hixl.Handle
	for end := time.Now().Add(d); lasts(ctx, n, end); n++ {
		at := &window[n%coalesceDepth]
		if *at != nil {
			if err := (*at).Wait(ctx); err != nil {
				return n, err
			}
		}
		if *at, err = m.peer.WriteAsync(m.desc(n), hixl.Ordered); err != nil {
			return n, err
		}
	}
	return n, m.peer.Flush(ctx)
}

func (m *coalesceMover) unsignaled(ctx context.Context, d time.Duration) (uint64, error) {
	return m.push(ctx, d, hixl.NoCoalesce)
}

func (m *coalesceMover) coalesced(ctx context.Context, d time.Duration) (uint64, error) {
	return m.push(ctx, d, 0)
}

func (m *coalesceMover) push(ctx context.Context, d time.Duration, f hixl.TransferFlags) (n uint64, err error) {
	for end := time.Now().Add(d); lasts(ctx, n, end); n++ {
		if err := m.peer.Push(m.desc(n), f); errors.Is(err, hixl.ErrBusy) {
			if err := m.peer.Flush(ctx); err != nil {
				return n, err
			}
		} else if err != nil {
			return n, err
		}
	}
	return n, m.peer.Flush(ctx)
}

func (m *coalesceMover) overTCP(ctx context.Context, d time.Duration) (n uint64, err error) {
	defer context.AfterFunc(ctx, m.tcp.interrupt)() // a write waits for the reader
	for end := time.Now().Add(d); lasts(ctx, n, end); n++ {
		at := n * coalesceSize % coalesceArea
		if _, err := m.tcp.conn.Write(m.src.Bytes()[at : at+coalesceSize]); err != nil {
			return n, err
		}
	}
	return n, m.tcp.flush(ctx, n*coalesceSize)
}

// tcpSink is a TCP connection to a reader that counts.
type tcpSink struct {
	l    net.Listener
	conn net.Conn
	sum  atomic.Uint64 // bytes that have arrived
	want uint64        // bytes that were written and flushed
	more chan struct{} // capacity 1: sum has grown
	over chan struct{}
}

func newTCPSink(local netip.Addr) (*tcpSink, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(local, 0).String())
	if err != nil {
		return nil, err
	}
	s := &tcpSink{l: l, more: make(chan struct{}, 1), over: make(chan struct{})}
	go s.read()
	if s.conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		_ = l.Close()
		<-s.over
		return nil, err
	}
	return s, nil
}

func (s *tcpSink) read() {
	defer close(s.over)
	c, err := s.l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	for b := make([]byte, 64<<10); ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		s.sum.Add(uint64(n))
		select { // never blocks: the writer may be waiting for room on the connection
		case s.more <- struct{}{}:
		default:
		}
	}
}

// interrupt ends what waits on the connection, for good.
func (s *tcpSink) interrupt() { _ = s.conn.SetDeadline(time.Unix(1, 0)) } // refused when it is closed

// flush waits until n more bytes have arrived.
func (s *tcpSink) flush(ctx context.Context, n uint64) error {
	for s.want += n; s.sum.Load() < s.want; {
		select {
		case <-s.more:
		case <-s.over:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *tcpSink) close() error {
	err := errors.Join(s.conn.Close(), s.l.Close())
	<-s.over
	return err
}
