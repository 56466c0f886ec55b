//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/staged"
)

// driverCalls are what the way of a packet to device memory and back calls.
var driverCalls = []string{
	"aclInit", "aclrtSetDevice", "aclrtCreateContext", "aclrtGetLogicDevIdByUserDevId", "aclrtDeviceGetStreamPriorityRange",
	"aclrtMalloc", "aclrtFree", "aclrtMallocHost", "aclrtFreeHost", "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemcpyBatchAsync", "copy",
	"aclrtCreateStream", "aclrtSetStreamFailureMode", "aclrtDestroyStreamForce", "aclrtStreamQuery", "aclrtLaunchHostFunc",
	"aclrtReserveMemAddress", "aclrtMallocPhysical", "aclrtMapMem", "aclrtMemSetAccess", "aclrtUnmapMem", "aclrtFreePhysical",
	"aclrtReleaseMemAddress", "halHostRegister", "halHostUnregister", "aclrtResetDevice", "aclFinalize",
	"aclrtDestroyContext", // last: what it leaves stays
}

// everything opens a device, moves bytes in and out through a pool, large and small,
// and closes it all. It returns what went wrong.
func everything(c ascend.Config) (errs []error) {
	note := func(err error) bool {
		errs = append(errs, err)
		return err == nil
	}
	d, err := ascend.Open(c)
	if !note(err) {
		return errs
	}
	defer func() { note(d.Close()) }()
	p, err := staged.New(d, staged.Config{Chunk: 8192, Buffers: 2, Streams: 1})
	if !note(err) {
		return errs
	}
	defer func() { note(p.Close()) }()
	m, err := p.Alloc(20_000)
	if !note(err) {
		return errs
	}
	defer func() { note(m.Close()) }()
	for _, n := range []int{8, 20_000} {
		want, got := noise(uint64(n), n), make([]byte, n)
		if note(device.WriteAt(m, want, 0)) && note(device.ReadAt(m, got, 0)) && string(want) != string(got) {
			note(errors.New("bytes differ"))
		}
	}
	done := &ends{c: make(chan error, 1)}
	op := &device.AtomicOp{Kind: device.FetchAdd, Off: 64, Operand: 1}
	if now, err := m.Atomic(op, 0, done); now {
		note(err)
	} else {
		note(<-done.c)
	}
	// Scattered bytes make a list, of more than one copy where they do not wait.
	var v []device.Vec
	for off := uint64(0); off < 6000; off += 600 {
		v = append(v, device.Vec{Off: off, B: make([]byte, 500)})
	}
	if now, err := m.WriteV(v, 0, done); now {
		note(err)
	} else {
		note(<-done.c)
	}
	return errs
}

type ends struct{ c chan error }

func (e *ends) MemoryDone(_ uint64, err error) { e.c <- err }

// Each call of the driver fails once, at each place where it is made: the error is of
// the driver, with code and name, or what failed can be done without; all ends, and
// nothing is left.
func TestEachCallFails(t *testing.T) {
	for _, shape := range shapes[:3] {
		t.Run(shape.name, func(t *testing.T) {
			s := newSim(t, shape.env)
			require.Empty(t, errors.Join(everything(s.config())...))
			s.bind()
			for _, name := range driverCalls {
				for after := 0; ; after++ {
					code := 507899
					if strings.HasPrefix(name, "hal") {
						code = 17
					}
					t.Setenv("ASCENDSIM_FAIL", fmt.Sprintf("%s:%d:%d", name, code, after))
					before := s.count("injected")
					errs := everything(s.config())
					place := fmt.Sprintf("%s, call %d: %v", name, after+1, errs)
					for _, err := range errs {
						var failed *device.DriverError
						if err == nil {
							continue
						}
						require.ErrorAs(t, err, &failed, place)
						require.Equal(t, code, failed.Code, place)
						require.NotEqual(t, "unknown error", failed.Name, place)
					}
					if name != "aclrtDestroyContext" {
						for _, w := range things {
							require.Zero(t, s.count(w), "%s left after %s", w, place)
						}
					}
					if s.count("injected") == before {
						break
					}
				}
			}
		})
	}
}

// Without memory for staging there is no pool, and nothing is left of it; the device and
// other pools stay of use.
func TestOutOfStaging(t *testing.T) {
	s := newSim(t, copies)
	d := s.open()
	m := memory(t, pool(t, d, staged.Config{Buffers: 2}), 1<<16)
	before := d.Usage()
	for _, fail := range []string{"aclrtMallocHost:207001:0", "aclrtMallocHost:207001:17", "aclrtMallocHost:207001:31", "aclrtCreateStream:207008:3"} {
		s.set("FAIL", fail)
		_, err := staged.New(d, staged.Config{})
		var failed *device.DriverError
		require.ErrorAs(t, err, &failed, fail)
		require.Contains(t, fail, fmt.Sprint(failed.Code))
		require.Equal(t, before, d.Usage(), fail)
	}
	require.NoError(t, device.WriteAt(m, []byte("of use"), 0))
	require.NoError(t, pool(t, d, staged.Config{}).Close(), "there is memory again")
}

// A stream that fails and cannot be replaced at once is replaced later, with nothing
// left over.
func TestStreamThatCannotBeReplaced(t *testing.T) {
	s := newSim(t, copies)
	d := s.open()
	p := pool(t, d, staged.Config{Chunk: 4096, Buffers: 4, Streams: 2})
	m := memory(t, p, 1<<16)
	for round := range 20 {
		s.set("FAIL", "copy:507053:0:3,aclrtCreateStream:207008:0:1")
		err := device.WriteAt(m, make([]byte, 30_000), 0)
		var failed *device.DriverError
		require.ErrorAs(t, err, &failed, "round %d", round)
		s.set("FAIL", "")
		require.LessOrEqual(t, d.Usage().Streams, 4)
		if err := device.WriteAt(m, make([]byte, 30_000), 0); err != nil {
			require.ErrorAs(t, err, &failed) // no stream is left
			break
		}
	}
}
