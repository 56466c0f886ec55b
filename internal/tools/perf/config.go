package perf

import (
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/roce"
)

// Defaults and limits of perftest 4.5, in bytes, messages and powers of two.
const (
	DefaultSizeBW  = 65536
	DefaultSizeLat = 2
	DefaultIters   = 1000
	DefaultItersWB = 5000 // write_bw
	DefaultTxDepth = 128
	DefaultRxDepth = 512
	DefaultTimeout = 14
	DefaultCQMod   = 100
	MaxAllSize     = 8 << 20 // where -a ends
	MaxSize        = 1 << 30
	MaxIters       = 100_000_000
	MaxDepth       = 15000
	MaxQPs         = 1024
	MaxCQMod       = 1024
	MaxOuts        = 128 // READs and atomics in flight, as rdma_rxe
	MaxInline      = 256
	atomicSize     = 8
	// Above these, completions are asked for one by one, and peaks not looked for.
	cqModSize = 8192
	peakIters = 20000
	// unreliableDepth bounds the receives that wait at once for messages that
	// nobody sends again.
	unreliableDepth = 16000
)

// Config describes a run. The zero value is a server of ib_write_bw.
type Config struct {
	tools.Common
	Test Test
	// Size is the message's length in bytes, 1 to [MaxSize], default
	// [DefaultSizeBW] or [DefaultSizeLat], with UD at most the path MTU. Atomics
	// have 8.
	Size int
	// All runs every power of two from 2 to [MaxAllSize], with UD to the path MTU.
	All bool
	// Iters is the number of messages of a queue pair and size.
	Iters int
	// Duration, if not 0, replaces Iters: a run takes that long, and all but the
	// first and last quarter counts.
	Duration time.Duration
	// MTU limits the path MTU in bytes, 256 to 4096; 0 is the largest. The smaller
	// of both ends' is used.
	MTU int
	// QPs is the number of queue pairs, default 1; bandwidth tests only.
	QPs int
	// Bidirectional lets both ends send; bandwidth tests only.
	Bidirectional bool
	// Connection is RC (the zero value), UC for writes and sends, UD for sends.
	Connection hixl.Type
	// CM connects by the connection manager, and exchanges over it too.
	CM bool
	// TxDepth and RxDepth are the messages outstanding and the receives posted on
	// a queue pair.
	TxDepth, RxDepth int
	// Inline is the largest size that is sent inline, 0 to [MaxInline].
	Inline int
	// Outs is the number of READs and atomics in flight, 1 to [MaxOuts], which is
	// the default.
	Outs int
	// CQMod is the number of messages between completions; 0 chooses.
	CQMod int
	// Timeout is the ACK timeout exponent, 1 to 31.
	Timeout int
	// TrafficClass is the TOS byte of packets sent, 0 to 255.
	TrafficClass int
	// Atomic is the operation of an atomic test.
	Atomic AtomicType
	// NoPeak leaves the peak bandwidth out; Gbits reports Gb/s, not MiB/s.
	NoPeak, Gbits bool

	timeoutGiven bool
}

// fill puts the defaults in and checks everything that needs no NIC.
func (c *Config) fill() error {
	if err := c.Fill(tools.DefaultPort); err != nil {
		return err
	}
	if err := c.exclusions(); err != nil {
		return err
	}
	c.defaults()
	for _, f := range [...]struct {
		option          string
		value, min, max int
	}{
		{"-s", max(c.Size, 1), 1, MaxSize},
		{"-n", c.Iters, 1, MaxIters},
		{"-q", c.QPs, 1, MaxQPs},
		{"-t", c.TxDepth, 1, MaxDepth},
		{"-r", c.RxDepth, 1, unreliableDepth},
		{"-I", c.Inline, 0, MaxInline},
		{"-o", c.Outs, 1, MaxOuts},
		{"-Q", c.CQMod, 0, MaxCQMod},
		{"-u", c.Timeout, 1, 31},
		{"-T", c.TrafficClass, 0, 255},
	} {
		if f.value < f.min || f.value > f.max {
			return &tools.OptionError{Option: f.option, Value: f.value, Allowed: fmt.Sprintf("%d to %d", f.min, f.max)}
		}
	}
	if c.MTU != 0 {
		if _, err := roce.PathMTUFor(c.MTU); err != nil {
			return &tools.OptionError{Option: "-m", Value: c.MTU, Allowed: "256, 512, 1024, 2048 or 4096"}
		}
	}
	return nil
}

// exclusions checks what does not go together.
func (c *Config) exclusions() error {
	t := c.Test
	for _, f := range [...]struct {
		bad             bool
		option, allowed string
	}{
		{c.Size < 0, "-s", "a size is positive"},
		{t.Verb == Atomic && c.Size != 0 && c.Size != atomicSize, "-s", "an atomic has 8 bytes"},
		{t.Verb == Atomic && c.All, "-a", "an atomic has 8 bytes"},
		{t.Kind == Latency && c.QPs > 1, "-q", "latency is measured on one queue pair"},
		{t.Kind == Latency && c.Bidirectional, "-b", "a latency test goes both ways, or is one side's"},
		{c.Duration < 0 || c.Duration > 0 && c.All, "-D", "a time above 0, and not with -a"},
		{t.pulls() && c.Connection != hixl.RC, "-c", "READs and atomics need RC"},
		{t.Verb == Write && c.Connection == hixl.UD, "-c", "a write needs RC or UC"},
		{c.CM && c.Connection == hixl.UC, "-R", "RC or UD: UC is not supported in librdmacm, and not by perftest with -R"},
		{c.Inline > 0 && t.pulls(), "-I", "only writes and sends carry data that could be inline"},
	} {
		if f.bad {
			return &tools.OptionError{Option: f.option, Value: "here", Allowed: f.allowed}
		}
	}
	return nil
}

func (c *Config) defaults() {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Test == (Test{Write, Bandwidth}) {
		set(&c.Iters, DefaultItersWB)
	}
	set(&c.Iters, DefaultIters)
	set(&c.QPs, 1)
	set(&c.TxDepth, DefaultTxDepth)
	if c.Test.Kind == Latency {
		c.TxDepth = 1
	}
	c.depths()
	set(&c.Outs, MaxOuts)
	c.timeoutGiven = c.Timeout != 0
	set(&c.Timeout, DefaultTimeout)
	if c.Duration > 0 || c.Iters*c.QPs > peakIters || c.Test.Verb == Send && !c.Client() && !c.Bidirectional {
		c.NoPeak = true
	}
}

// depths shortens the queues to what there will be in them: perftest's sender
// counts on as many receives as it has of these.
func (c *Config) depths() {
	chosen := c.RxDepth
	if chosen == 0 {
		c.RxDepth = DefaultRxDepth
	}
	if c.Duration > 0 {
		return
	}
	c.TxDepth, c.RxDepth = min(c.TxDepth, c.Iters), min(c.RxDepth, c.Iters)
	if chosen == 0 && c.Connection != hixl.RC {
		c.RxDepth = min(c.Iters, unreliableDepth)
	}
}

// cqMod returns the number of messages between completions for a size.
func (c *Config) cqMod() int {
	mod := c.CQMod
	if mod == 0 {
		mod = DefaultCQMod
		if !c.All && c.Size > cqModSize && c.Connection != hixl.UD {
			mod = 1
		}
	}
	if c.Test.Kind == Latency {
		mod = 1
	}
	return min(mod, c.TxDepth)
}

// sizes returns what a run goes through, for a path MTU in bytes.
func (c *Config) sizes(mtu int) ([]int, error) {
	limit := MaxSize
	if c.Connection == hixl.UD {
		limit = mtu
	}
	switch {
	case c.All:
		var all []int
		for s := 2; s <= min(limit, MaxAllSize); s *= 2 {
			all = append(all, s)
		}
		return all, nil
	case c.Size > limit:
		return nil, &tools.OptionError{Option: "-s", Value: c.Size, Allowed: fmt.Sprintf("a datagram holds at most the path MTU, %d bytes here", mtu)}
	case c.Test.Verb == Atomic:
		c.Size = atomicSize
	case c.Size == 0 && c.Test.Kind == Latency:
		c.Size = DefaultSizeLat
	case c.Size == 0:
		c.Size = min(DefaultSizeBW, limit)
	}
	return []int{c.Size}, nil
}
