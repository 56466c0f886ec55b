package nic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// Limits and defaults of a NIC.
const (
	// DefaultMaxQPs is the number of queue pairs of a NIC that is not told.
	DefaultMaxQPs = 1 << 14
	// MaxQPs is the largest that can be asked for; it leaves 6 bits of a QPN to
	// tell a slot's successive users apart.
	MaxQPs = 1 << 18
	// DefaultEvents is the number of events that wait to be taken.
	DefaultEvents = 256
	// maxPlacing bounds a queue pair's packets on their way into late memory.
	maxPlacing = 1024
)

// Errors of a NIC, to test for with errors.Is.
var (
	// ErrClosed: the NIC was closed.
	ErrClosed = errors.New("nic: closed")
	// ErrDevice: the transport failed for good (*DeviceError).
	ErrDevice = errors.New("nic: device failed")
	// ErrGSIExists: QP1 exists already, and there is one.
	ErrGSIExists = errors.New("nic: QP1 exists already")
	// ErrTooManyQPs: all queue pair numbers are taken.
	ErrTooManyQPs = errors.New("nic: too many queue pairs")
	// ErrConfig: a configuration value out of its limits.
	ErrConfig = errors.New("nic: bad configuration")
)

// ConfigError reports a configuration value out of its limits. It unwraps to
// [ErrConfig].
type ConfigError struct {
	Field   string
	Value   any
	Allowed string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("nic: %s is %v, allowed: %s", e.Field, e.Value, e.Allowed)
}

// Unwrap returns [ErrConfig].
func (e *ConfigError) Unwrap() error { return ErrConfig }

// Progress is how long whoever waits looks for packets before it parks. Looking,
// it yields the processor to anybody else who wants it. An idle NIC parks in every
// mode.
type Progress uint8

// The modes.
const (
	// Balanced looks for some tens of µs, so that two processes that answer each other
	// seldom park: with half as many looks they did, where the system chose their cores.
	Balanced Progress = iota
	// LowLatency looks for some 100 µs. While small packets come one by one, it lets the
	// transport leave most of their marks of congestion unread (transport.Rx.SkipTOS): what
	// is so little makes no congestion, and is seen to be marked some time later. Nor does
	// it let data gather, as the other modes do, which move more of it with less.
	LowLatency
	// LowCPU parks at once.
	LowCPU
)

// tries is how often each mode looks.
var tries = [...]int{Balanced: 128, LowLatency: 640, LowCPU: 0}

// Config describes a NIC.
type Config struct {
	// Conn carries its packets; the NIC closes it.
	Conn transport.Conn
	// Clock is the time; nil is the system's monotonic clock.
	Clock func() mono.Time
	// MTU limits the path MTU of queue pairs; 0 is the largest that the
	// transport's MTU carries (§1.12).
	MTU roce.PathMTU
	// MaxQPs is the number of queue pairs, 1..[MaxQPs], default [DefaultMaxQPs].
	// MaxRegions is the number of regions, see mr.Config.
	MaxQPs, MaxRegions int
	// Events is how many asynchronous events wait, default [DefaultEvents].
	Events int
	// PathWindow is what the reliable connections to one destination may have
	// unanswered together, in bytes, 64 KiB or more, default [DefaultPathWindow]. Of
	// the transport's receive buffer, where its size is known, a quarter is used.
	PathWindow int
	// NoECN leaves packets unmarked; otherwise those whose traffic class has no
	// ECN bits leave as ECN-capable, ECT(0) (§7.2).
	NoECN bool
	// NoTrains sends every packet on its own.
	NoTrains bool
	// NoICRCCheck accepts packets whatever their ICRC says: for laboratories that
	// rewrite packets (§2.5). Packets sent are always sealed.
	NoICRCCheck bool
	// Progress chooses between latency and processor time.
	Progress Progress
	// Logger gets what an operator should know, rarely; nil is off.
	Logger *slog.Logger
}

func (c *Config) fill() error {
	if c.Conn == nil {
		return &ConfigError{"Conn", "missing", "an open transport"}
	}
	if c.Clock == nil {
		c.Clock = systemClock()
	}
	if c.MaxQPs == 0 {
		c.MaxQPs = DefaultMaxQPs
	}
	if c.MaxQPs < 1 || c.MaxQPs > MaxQPs {
		return &ConfigError{"MaxQPs", c.MaxQPs, fmt.Sprintf("1 to %d", MaxQPs)}
	}
	if c.MaxRegions < 0 || c.MaxRegions > mr.MaxRegions {
		return &ConfigError{"MaxRegions", c.MaxRegions, fmt.Sprintf("1 to %d", mr.MaxRegions)}
	}
	if c.Events == 0 {
		c.Events = DefaultEvents
	}
	if c.Events < 1 {
		return &ConfigError{"Events", c.Events, "1 or more"}
	}
	if c.PathWindow == 0 {
		c.PathWindow = DefaultPathWindow
	}
	if c.PathWindow < minPath {
		return &ConfigError{"PathWindow", c.PathWindow, "65536 or more"}
	}
	if int(c.Progress) >= len(tries) {
		return &ConfigError{"Progress", c.Progress, "Balanced, LowLatency or LowCPU"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.fillMTU()
}

func (c *Config) fillMTU() error {
	link := c.Conn.Caps().MTU
	most, err := roce.RxePortMTU(link)
	if err != nil {
		return err
	}
	if c.MTU == 0 {
		c.MTU = most
	}
	if !c.MTU.Valid() || c.MTU > most {
		return &ConfigError{"MTU", c.MTU, fmt.Sprintf("256 to %v bytes: the link takes IP packets of %d", most, link)}
	}
	return nil
}

// systemClock counts from its own start, which is 1: 0 means never.
func systemClock() func() mono.Time {
	start := time.Now()
	return func() mono.Time { return mono.Time(time.Since(start)) + 1 }
}

// TimeLeft returns how long ctx has until its deadline, and the longest duration
// there is when it has none.
func TimeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return time.Until(end)
}
