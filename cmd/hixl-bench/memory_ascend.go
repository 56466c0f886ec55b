//go:build ascend

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/gohixl/hixl/bench"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/staged"
)

func init() { bench.AddMemory("ascend", openAscend) }

// ascendMemory is memory of the device that the environment names.
type ascendMemory struct {
	dev  *ascend.Device
	pool *staged.Pool
	what string
}

func openAscend() (bench.MemorySource, error) {
	c := ascend.Config{Library: os.Getenv("HIXL_ASCEND_LIBRARY"), Driver: os.Getenv("HIXL_ASCEND_DRIVER")}
	if s := os.Getenv("HIXL_ASCEND_DEVICE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("HIXL_ASCEND_DEVICE is %q: give the number of a device", s)
		}
		c.Device = n
	}
	dev, err := ascend.Open(c)
	if err != nil {
		return nil, err
	}
	m := &ascendMemory{dev: dev}
	if err := m.begin(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// begin measures the copy engine, against which results are to be read.
func (m *ascendMemory) begin() (err error) {
	const size = 16 << 20
	in, out, err := m.dev.MeasureCopies(size)
	if err != nil {
		return err
	}
	i := m.dev.Info()
	mapping := m.dev.Caps().Mapping
	if mapping == "" {
		mapping = "none"
	}
	m.what = fmt.Sprintf("%s (%s, version %s; copies %.2f GB/s in, %.2f GB/s out; mapping: %s)",
		i.Name, i.Model, i.Version, float64(size)/float64(in), float64(size)/float64(out), mapping)
	m.pool, err = staged.New(m.dev, staged.Config{})
	return err
}

// Alloc allocates device memory.
func (m *ascendMemory) Alloc(size int) (device.Memory, func() error, error) {
	mem, err := m.pool.Alloc(uint64(size))
	if err != nil {
		return nil, nil, err
	}
	return mem, mem.Close, nil
}

// Describe says which device, and how fast it copies.
func (m *ascendMemory) Describe() string { return m.what }

// Close closes the device.
func (m *ascendMemory) Close() error {
	var err error
	if m.pool != nil {
		err = m.pool.Close()
	}
	return errors.Join(err, m.dev.Close())
}
