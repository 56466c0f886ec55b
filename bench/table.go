package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gohixl/hixl/transport/udp"
)

// WriteTable writes what was run, then one table of all results and baselines.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	r.heading(&b)
	writeColumns(&b, r.rows(), 1)
	b.WriteString("\n" + r.legend() + r.interrupted())
	_, err := io.WriteString(w, b.String())
	return err
}

// interrupted says that a run was ended before its time, if it was.
func (r *Report) interrupted() string {
	if !r.Interrupted {
		return ""
	}
	return fmt.Sprintf("Interrupted: what had finished no round is missing, the rest may have fewer than %d.\n", r.Config.Rounds)
}

// headline says between whom and on what machine a run was.
func headline(local, peer, mode, machine string) string {
	s := fmt.Sprintf("hixl-bench: RoCEv2 over UDP port 4791, %s -> %s, %s\n", local, peer, mode)
	if machine != "" {
		s += "machine: " + machine + "\n"
	}
	return s
}

func (r *Report) heading(b *strings.Builder) {
	c := &r.Config
	b.WriteString(headline(c.Local, c.Peer, c.Mode+pinnedTo(c.Pinned), c.Machine))
	fmt.Fprintf(b, "region %s, mtu %s, %s, %s a cell, seed %d\n",
		formatSize(c.Region), join(c.MTUs, func(m int) string {
			if m == 0 {
				return "auto"
			}
			return strconv.Itoa(m)
		}), plural(c.Rounds, "round"), c.Duration, c.Seed)
	if c.LowLatency {
		b.WriteString("progress: low latency on both sides\n")
	}
	if c.Memory != "" {
		fmt.Fprintf(b, "memory: %s -> %s\n", c.Memory, c.PeerMemory)
	}
	if c.any() {
		fmt.Fprintf(b, "faults injected on both sides, a packet: loss %v, reorder %v, duplicate %v, corrupt %v\n",
			c.Loss, c.Reorder, c.Duplicate, c.Corrupt)
	}
	b.WriteByte('\n')
}

func (r *Report) legend() string {
	s := "p50, p99, p99.9 us: " + r.Config.LatencyIs + ".\n" +
		"GB is 1e9 bytes of payload; cpu is user and system time of both processes; rtx is packets sent again.\n"
	if len(r.Baselines) > 0 {
		s += "vs: bandwidth against the baseline moving the same size in the same round, median [min..max].\n"
	}
	return s + r.contenders()
}

// contenders says what baselines are, which are missing, and what was met.
func (r *Report) contenders() (s string) {
	if r.Config.TCP != "" {
		s += "tcp: " + r.Config.TCP + "; its latency is a message and an 8-byte answer.\n"
	}
	return s + r.abouts() + r.causes() + r.verified()
}

// verified says whose bytes were compared: foreign programs' are their own business.
func (r *Report) verified() string {
	foreign := ""
	if slices.ContainsFunc(r.Config.Baselines, Baseline.foreign) {
		foreign = "; what foreign programs moved was not"
	}
	return "Every byte of " + r.compared() + " was verified" + foreign + ".\n"
}

// compared names those whose bytes were, such as "ours, tcp and memcpy".
func (r *Report) compared() string {
	own := slices.DeleteFunc(slices.Clone(r.Config.Baselines), Baseline.foreign)
	if len(own) == 0 {
		return "ours"
	}
	last := len(own) - 1
	return strings.Join(append([]string{"ours"}, each(own[:last], func(b Baseline) string { return string(b) })...), ", ") + " and " + string(own[last])
}

// abouts explains the baselines that need it, and those that are missing.
func (r *Report) abouts() (s string) {
	foreign := ""
	for _, b := range r.Config.Baselines {
		if k := b.kind(); k != nil && k.about != "" {
			s += fmt.Sprintf("%s: %s.\n", b, k.about)
			if k.program != nil {
				foreign = r.Config.ForeignTCP
			}
		}
	}
	if foreign != "" {
		s += "Foreign programs run in a network namespace with loopback alone, TCP congestion control " + foreign +
			"; what they print as a latency is one way, half of there and back; their cpu includes starting.\n"
	}
	for _, m := range r.Missing {
		s += fmt.Sprintf("%s: %s.\n", m.Name, m.Why)
	}
	return s
}

// causes says why packets were sent again, and what to do about what can be
// helped.
func (r *Report) causes() string {
	var all Causes
	for i := range r.Results {
		all = all.add(r.Results[i].Causes)
	}
	if all == (Causes{}) {
		return ""
	}
	s := fmt.Sprintf("Packets sent again have their causes in %s (no receive was posted), %s and %s; packets dropped at full receive buffers: %d.\n",
		plural(all.RNRNAKs, "RNR NAK"), plural(all.SeqNAKs, "sequence NAK"), plural(all.Timeouts, "timeout"), all.RxOverflow)
	if all.RxOverflow > 0 {
		s += fmt.Sprintf("Full receive buffers: allow larger ones on both sides, sysctl -w net.core.rmem_max=%d (or run with CAP_NET_ADMIN); or choose a lower --depth or --qps.\n",
			udp.DefaultRecvBuffer)
	}
	return s
}

// rows is the table with its heading; the baselines follow the results.
func (r *Report) rows() [][]string {
	head := []string{"op", "size"}
	several := r.several()
	if several {
		head = append(head, "qps", "depth", "mtu")
	}
	head = append(head, "GB/s", "msg/s", "p50 us", "p99 us", "p99.9 us", "cpu s/GB", "rtx")
	for _, b := range r.Config.Baselines {
		head = append(head, "vs "+b.label())
	}
	rows := [][]string{head}
	for i := range r.Results {
		rows = append(rows, r.resultRow(&r.Results[i], several))
	}
	for _, x := range r.Baselines {
		row := []string{x.Name.label(), formatSize(x.Size)}
		if several {
			row = append(row, "", "", "")
		}
		row = append(row, digits(x.GBPerS), count(per(x.GBPerS*1e9, float64(x.Size))))
		row = append(row, x.LatencyUS.cells()...)
		rows = append(rows, append(row, digits(x.CPUPerGB)))
	}
	return rows
}

func (r *Report) several() bool {
	return len(r.Config.QPs) > 1 || len(r.Config.Depths) > 1 || len(r.Config.MTUs) > 1
}

func (r *Report) resultRow(x *Result, several bool) []string {
	row := []string{x.Op.String(), formatSize(x.Size)}
	if several {
		mtu := "auto"
		if x.MTU != 0 {
			mtu = strconv.Itoa(x.MTU)
		}
		row = append(row, strconv.Itoa(x.QPs), strconv.Itoa(x.Depth), mtu)
	}
	row = append(row, digits(x.GBPerS), count(x.MsgsPerS))
	row = append(row, x.LatencyUS.cells()...)
	row = append(row, digits(x.CPUPerGB), strconv.FormatUint(x.Retransmits, 10))
	for _, b := range r.Config.Baselines {
		v := "-"
		if q := r.ratio(x, b); q != nil {
			v = fmt.Sprintf("%s [%s..%s]", digits(q.Median), digits(q.Min), digits(q.Max))
		}
		row = append(row, v)
	}
	return row
}

// cells are the three latency columns, empty for what has none.
func (l *Latency) cells() []string {
	if l == nil {
		return []string{"", "", ""}
	}
	if l.P99 == 0 {
		return []string{digits(l.P50), "", ""}
	}
	return []string{digits(l.P50), digits(l.P99), digits(l.P999)}
}

// digits writes three significant digits without an exponent, at most four places
// above a thousandth.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v >= 0.001 || !(v > 0):
		return strconv.FormatFloat(v, 'f', 4, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(v))), 64)
	}
}

// plural writes how many there are of what.
func plural[N int | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// count writes a rate with k or M.
func count(v float64) string {
	switch {
	case v >= 1e6:
		return digits(v/1e6) + "M"
	case v >= 1e3:
		return digits(v/1e3) + "k"
	default:
		return digits(v)
	}
}
