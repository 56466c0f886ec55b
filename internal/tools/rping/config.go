package rping

import (
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// Defaults and limits of the original.
const (
	DefaultPort = 7174
	DefaultSize = 64
	MinSize     = 26 // room for the text and any number
	MaxSize     = 64<<10 - 1
)

// Config describes a game. The zero value is a server of the original's defaults.
type Config struct {
	tools.Common
	// Size is the ball's size in bytes, [MinSize] to [MaxSize], default
	// [DefaultSize]. A server takes what comes.
	Size int
	// Count is the number of rounds: a client plays so many, or with 0 until ctx
	// ends; a server insists on as many if it is given.
	Count int
	// Verbose prints each ball. Validate compares every byte of it, at the client
	// with what was sent, at the server with what the original sends.
	Verbose, Validate bool
}

func (c *Config) fill() error {
	if err := c.Fill(DefaultPort); err != nil {
		return err
	}
	if c.Size == 0 {
		c.Size = DefaultSize
	}
	if c.Size < MinSize || c.Size > MaxSize {
		return &tools.OptionError{Option: "-S", Value: c.Size, Allowed: fmt.Sprintf("%d to %d", MinSize, MaxSize)}
	}
	if c.Count < 0 {
		return &tools.OptionError{Option: "-C", Value: c.Count, Allowed: "a number of rounds, 0 is without end"}
	}
	return nil
}
