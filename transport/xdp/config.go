package xdp

import (
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"github.com/gohixl/hixl/transport"
)

// Defaults and limits of Config.
const (
	DefaultRxFrames = 4096 // packets that can wait to be read
	DefaultTxFrames = 2048 // packets on their way out
	MinFrames       = 64
	MaxFrames       = 1 << 15
	MaxQueues       = 64
	// DefaultTxBudget is how many packets one system call sends: the kernel's own
	// 32 cost twice the calls.
	DefaultTxBudget = 512
	DefaultHopLimit = 64
	// DefaultSpin is longer than most gaps within a stream of packets.
	DefaultSpin = 50 * time.Microsecond
	// MaxSpin bounds Spin: whoever has waited so long does not lose by sleeping.
	MaxSpin = time.Millisecond
	// SpinOff as Spin has each wait sleep at once.
	SpinOff time.Duration = -1
	// MaxMTU bounds the packets of a link with a larger MTU: RoCEv2 has none
	// that are longer than 4.3 KB.
	MaxMTU = 9216
)

// Mode is where on the receive path the program runs.
type Mode uint8

// The modes.
const (
	// ModeAuto is native where the driver has it, and generic elsewhere.
	ModeAuto Mode = iota
	// ModeNative runs in the driver, before the kernel makes a packet of a frame.
	ModeNative
	// ModeGeneric runs behind any driver, where the kernel has made a packet of the
	// frame already: dearer on hardware, no difference on virtual links.
	ModeGeneric
)

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

var modeNames = [...]string{"auto", "native", "generic"}

// ParseMode returns the mode of a name that String gives, and whether there is one.
func ParseMode(name string) (Mode, bool) {
	i := slices.Index(modeNames[:], name)
	return Mode(max(i, 0)), i >= 0
}

// Checksum is what the UDP checksum of sent packets is.
type Checksum uint8

// The choices for Checksum.
const (
	// ChecksumZero leaves it out, as RoCEv2 senders do: the ICRC covers the packet.
	ChecksumZero Checksum = iota
	// ChecksumFull computes it, for networks and receivers that insist.
	ChecksumFull
)

// ZeroCopy chooses whether the driver reads and writes the rings' memory itself.
type ZeroCopy uint8

// The choices for ZeroCopy.
const (
	// ZeroCopyAuto uses it where the driver has it.
	ZeroCopyAuto ZeroCopy = iota
	// ZeroCopyOff has the kernel copy.
	ZeroCopyOff
	// ZeroCopyOnly fails where the driver does not have it.
	ZeroCopyOnly
)

// Config sets up a Conn. The zero value is good.
type Config struct {
	// Interface is the link; empty is the one that has the address. It may be the
	// link below a VLAN that has the address: frames then carry its tag.
	Interface string
	Mode      Mode
	ZeroCopy  ZeroCopy
	// Queues is how many queues of the link are served, from 0 on, each with a
	// socket, 1..MaxQueues; 0 is all that the link has. What arrives on others
	// comes through the kernel, slower.
	Queues int
	// RxFrames and TxFrames are the packets that a queue can hold on each way, a
	// power of two, MinFrames..MaxFrames; 0 is the default. With jumbo frames
	// fewer are used on the way out, so that memory stays below some 32 MiB.
	RxFrames, TxFrames int
	Checksum           Checksum
	// VerifyChecksum drops received packets whose UDP checksum is wrong. Without
	// it the checksum is not looked at: what it covers the ICRC covers, but for the
	// eight masked bits of the BTH. 0 is no checksum, and the sum of the
	// pseudo-header alone is that of a sender on this machine, who leaves the rest
	// to a device that is not there: both pass.
	VerifyChecksum bool
	// HopLimit is the TTL or hop limit of sent packets, 1..255, default 64.
	HopLimit int
	// TxBudget is how many packets one system call sends, 1..65535, default 512.
	// Kernels without the option send 32.
	TxBudget int
	// Spin is how long a wait for packets looks at the rings before it sleeps, at
	// most MaxSpin; 0 is DefaultSpin, and SpinOff not at all. On virtual links whoever
	// sleeps is woken on the sender's processor, at the sender's cost: a receiver that
	// looks lets it send more. Only while the last waits took a quarter of it or less,
	// on average, does one look: a NIC on which packets come rarely sleeps at once.
	// What comes by the kernel's way waits as long: see the package's documentation.
	Spin time.Duration
	// BusyPoll has reads poll the driver for up to that long, at most a second;
	// 0 is off. It pays with hardware whose interrupts cost more; on virtual links
	// it does not.
	BusyPoll time.Duration
	// Notify hears of changes on the link, on a goroutine of the Conn; it must
	// not block nor close the Conn. nil is off.
	Notify func(Event)
	// Logger gets what an operator should know, rarely; nil is off.
	Logger *slog.Logger
}

func (c Config) fill() (Config, error) {
	for _, f := range []struct {
		name          string
		v             *int
		def, min, max int
		pow2          bool
	}{
		{"xdp.Config.Queues", &c.Queues, 0, 0, MaxQueues, false},
		{"xdp.Config.RxFrames", &c.RxFrames, DefaultRxFrames, MinFrames, MaxFrames, true},
		{"xdp.Config.TxFrames", &c.TxFrames, DefaultTxFrames, MinFrames, MaxFrames, true},
		{"xdp.Config.HopLimit", &c.HopLimit, DefaultHopLimit, 1, 255, false},
		{"xdp.Config.TxBudget", &c.TxBudget, DefaultTxBudget, 1, 65535, false},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		allowed := fmt.Sprintf("%d..%d, or 0 for the default", f.min, f.max)
		bad := *f.v < f.min || *f.v > f.max
		if f.pow2 {
			allowed += ", a power of two"
			bad = bad || bits.OnesCount(uint(*f.v)) != 1
		}
		if bad {
			return c, &transport.ConfigError{Field: f.name, Value: *f.v, Allowed: allowed}
		}
	}
	switch {
	case c.Mode > ModeGeneric:
		return c, &transport.ConfigError{Field: "xdp.Config.Mode", Value: c.Mode, Allowed: "ModeAuto, ModeNative, ModeGeneric"}
	case c.Checksum > ChecksumFull:
		return c, &transport.ConfigError{Field: "xdp.Config.Checksum", Value: c.Checksum, Allowed: "ChecksumZero, ChecksumFull"}
	case c.ZeroCopy > ZeroCopyOnly:
		return c, &transport.ConfigError{Field: "xdp.Config.ZeroCopy", Value: c.ZeroCopy, Allowed: "ZeroCopyAuto, ZeroCopyOff, ZeroCopyOnly"}
	case c.ZeroCopy == ZeroCopyOnly && c.Mode == ModeGeneric:
		return c, &transport.ConfigError{Field: "xdp.Config.ZeroCopy", Value: "ZeroCopyOnly", Allowed: "anything else with ModeGeneric"}
	case c.Spin != SpinOff && (c.Spin < 0 || c.Spin > MaxSpin):
		return c, &transport.ConfigError{Field: "xdp.Config.Spin", Value: c.Spin, Allowed: "0 to 1ms, or SpinOff"}
	case c.BusyPoll < 0 || c.BusyPoll > time.Second:
		return c, &transport.ConfigError{Field: "xdp.Config.BusyPoll", Value: c.BusyPoll, Allowed: "0 to 1s"}
	}
	if c.Spin == 0 {
		c.Spin = DefaultSpin
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
