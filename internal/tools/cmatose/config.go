package cmatose

import (
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// Defaults of the original, and limits.
const (
	DefaultPort        = 7471
	DefaultConnections = 1
	DefaultMessages    = 10
	DefaultSize        = 100
	maxConnections     = 4096
	maxMessages        = 10000
	maxSize            = 64 << 20
)

// Config describes a test. Its numbers have no zero values: see [Defaults].
type Config struct {
	tools.Common
	// Connections is their number, 1 to 4096; both ends need the same.
	Connections int
	// Messages go each way over each connection, 0 to 10,000, of Size bytes, 0 to
	// 64 MiB; without a size there are none. Both ends need the same.
	Messages, Size int
	// TrafficClass is the TOS byte of a client's connections; the server's answers
	// have the same.
	TrafficClass int
	// Timeout is the ACK timeout exponent, 1 to 31; 0 is what RDMA CM computes.
	Timeout int
}

// Defaults returns a server's Config with the original's numbers.
func Defaults() Config {
	return Config{Connections: DefaultConnections, Messages: DefaultMessages, Size: DefaultSize}
}

func (c *Config) fill() error {
	if err := c.Fill(DefaultPort); err != nil {
		return err
	}
	for _, f := range [...]struct {
		option          string
		value, min, max int
	}{
		{"-c", c.Connections, 1, maxConnections},
		{"-C", c.Messages, 0, maxMessages},
		{"-S", c.Size, 0, maxSize},
		{"-t", c.TrafficClass, 0, 255},
		{"-a", c.Timeout, 0, 31},
	} {
		if f.value < f.min || f.value > f.max {
			return &tools.OptionError{Option: f.option, Value: f.value, Allowed: fmt.Sprintf("%d to %d", f.min, f.max)}
		}
	}
	if c.Size == 0 {
		c.Messages = 0
	}
	return nil
}
