package pingpong

import (
	"fmt"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/roce"
)

// Defaults of the originals.
const (
	DefaultSize    = 4096
	DefaultSizeUD  = 1024
	DefaultIters   = 1000
	DefaultMTU     = 1024
	DefaultRxDepth = 500
	maxSize        = 1 << 30
	maxIters       = 1 << 31
)

// Config describes a run. The zero value is a server of ibv_rc_pingpong's
// defaults.
type Config struct {
	tools.Common
	// Service is RC (the zero value), UC or UD.
	Service hixl.Type
	// Size is the message's length in bytes, 1 to 1 GiB, and with UD no more than
	// the path MTU; default [DefaultSize], UD [DefaultSizeUD].
	Size int
	// Iters is the number of exchanges, default [DefaultIters].
	Iters int
	// MTU is the path MTU in bytes, 256 to 4096, default [DefaultMTU]; both ends
	// must be given the same. UD has none.
	MTU int
	// RxDepth is the number of receives posted at a time, default
	// [DefaultRxDepth].
	RxDepth int
	// Check compares every byte of every message with what the originals send
	// when both have -c. Without it only the lengths are looked at.
	Check bool
}

func (c *Config) fill() error {
	if err := c.Fill(tools.DefaultPort); err != nil {
		return err
	}
	if c.Service == hixl.UD {
		def(&c.Size, DefaultSizeUD)
	}
	def(&c.Size, DefaultSize)
	def(&c.Iters, DefaultIters)
	def(&c.MTU, DefaultMTU)
	def(&c.RxDepth, DefaultRxDepth)
	for _, f := range [...]struct {
		option     string
		value, max int
	}{{"-s", c.Size, maxSize}, {"-n", c.Iters, maxIters}, {"-r", c.RxDepth, maxRxDepth}} {
		if f.value < 1 || f.value > f.max {
			return &tools.OptionError{Option: f.option, Value: f.value, Allowed: fmt.Sprintf("1 to %d", f.max)}
		}
	}
	if _, err := roce.PathMTUFor(c.MTU); err != nil {
		return &tools.OptionError{Option: "-m", Value: c.MTU, Allowed: "256, 512, 1024, 2048 or 4096"}
	}
	return nil
}

// maxRxDepth is the largest receive queue of a queue pair.
const maxRxDepth = 1 << 15

func def(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}
