package staged

import (
	"fmt"

	"github.com/gohixl/hixl/device"
)

// Config of a pool. The zero value is right for a start.
type Config struct {
	// Streams is how many streams copy in each direction, 1 to 16, default 2. Each
	// has one copy under way and one queued behind it.
	Streams int
	// Chunk is the size in bytes of a staging buffer and of the largest copy, 4 KiB
	// to 1 GiB, default 256 KiB.
	Chunk int
	// Buffers is the number of staging buffers in each direction, 2 to 4096,
	// default 16.
	Buffers int
	// Spill bounds what waits on the Go heap, in bytes, 0 to 1 GiB: bytes that overlap
	// an operation under way, or find no buffer free. Beyond it the pool's memories are
	// congested. Default Chunk; None: as soon as anything waits.
	Spill int
	// Small is the largest message, in bytes, that is written through a mapping,
	// default 4096; None writes none.
	Small int
	// SmallRead is the largest that is read through one, default 64, or Small where
	// the mapping is cached; None reads none.
	SmallRead int
	// Priority is that of the streams, see device.Driver.
	Priority int
}

// None is 0 where 0 means the default.
const None = -1

// Bound is the memory for staging, in bytes, that a pool of this configuration takes:
// 2·Buffers·Chunk of it are pinned, Spill may be on the Go heap. A packet of each
// queue pair that writes through the pool may come on top.
func (c Config) Bound() int {
	c = c.fill(device.Caps{})
	return 2*c.Buffers*c.Chunk + c.Spill
}

// fill puts defaults where there is 0.
func (c Config) fill(caps device.Caps) Config {
	def := func(v *int, d int) {
		switch *v {
		case 0:
			*v = d
		case None:
			*v = 0
		}
	}
	def(&c.Streams, 2)
	def(&c.Chunk, 256<<10)
	def(&c.Buffers, 16)
	def(&c.Spill, c.Chunk)
	def(&c.Small, 4096)
	read := 64
	if caps.MappingCached {
		read = c.Small
	}
	def(&c.SmallRead, read)
	return c
}

// check refuses what cannot be.
func (c *Config) check() error {
	for _, v := range []struct {
		name         string
		is, min, max int
	}{
		{"Streams", c.Streams, 1, 16},
		{"Chunk", c.Chunk, 4 << 10, 1 << 30},
		{"Buffers", c.Buffers, 2, 4096},
		{"Spill", c.Spill, 0, 1 << 30},
		{"Small", c.Small, 0, 1 << 20},
		{"SmallRead", c.SmallRead, 0, 1 << 20},
	} {
		if v.is < v.min || v.is > v.max {
			return &device.ArgumentError{
				Call: "staged.New", What: fmt.Sprintf("%s %d", v.name, v.is),
				Allowed: fmt.Sprintf("%d to %d", v.min, v.max),
			}
		}
	}
	return nil
}
