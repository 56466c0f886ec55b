//go:build !linux

package bench

import (
	"errors"
	"runtime"
)

// haveShared: memory cannot be shared with the peer's process here.
const haveShared = false

type sharedMemory struct{ mem []byte }

var errNoShared = errors.New("shm baseline: needs Linux")

func shareMemory(int) (*sharedMemory, error)        { return nil, errNoShared }
func openShared(_, _, _ int) (*sharedMemory, error) { return nil, errNoShared }
func (m *sharedMemory) fd() int                     { return -1 }
func (m *sharedMemory) close()                      {}
func yield()                                        { runtime.Gosched() }
