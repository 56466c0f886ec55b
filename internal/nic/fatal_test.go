package nic_test

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

var errGone = errors.New("the device is gone")

// deaf reports an error instead of reading, as long as it has one.
type deaf struct {
	transport.Conn
	err   atomic.Pointer[error]
	times atomic.Int64 // how often, 0 without end
}

func (c *deaf) fail(err error) { c.err.Store(&err) }

func (c *deaf) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	if err := c.err.Load(); err != nil {
		if c.times.Add(-1) == 0 {
			c.err.Store(nil)
		}
		return 0, *err
	}
	return c.Conn.ReadBatch(b, wait)
}

func deafFabric(t *testing.T) (*nictest.Fabric, *deaf) {
	d := &deaf{}
	return nictest.New(t, nictest.Config{
		Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}},
		Tune: func(host int, c *nic.Config) {
			if host == 0 {
				d.Conn, c.Conn = c.Conn, d
			}
		},
	}), d
}

// requireFatal takes a device's only event of this kind.
func requireFatal(t *testing.T, n *nic.NIC, want error) {
	t.Helper()
	fatal := 0
	for {
		select {
		case e := <-n.Events():
			if e.Type == qp.EventDeviceFatal {
				fatal++
				require.ErrorIs(t, e.Err, want)
			}
		default:
			require.Equal(t, 1, fatal)
			return
		}
	}
}

// A transport that fails for good takes all queue pairs along: connected or not,
// of all types. Nobody waits in vain.
func TestDeviceFatal(t *testing.T) {
	for name, err := range map[string]error{"error": errGone, "closed by somebody": net.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			f, d := deafFabric(t)
			watched := 0
			watch := func(e qp.Event) {
				if e.Type == qp.EventQPFatal {
					watched++
					require.Equal(t, cq.StatusFatal, e.Cause.Status)
				}
			}
			var ends []*nictest.End
			for _, kind := range []qp.Type{qp.RC, qp.UC, qp.UD} {
				a, _ := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{Type: kind, Watch: watch}})
				ends = append(ends, a)
			}
			early, _ := f.Pair(0, 1, nictest.PairConfig{Unconnected: true})
			for _, a := range append(ends, early) {
				a.Receive(qp.RecvWR{ID: 7})
			}
			ends[0].Post(qp.SendWR{ID: 1, Op: wr.OpSend}, qp.SendWR{ID: 2, Op: wr.OpSend})
			d.fail(err)
			f.Settle()

			got := ends[0].Take(ends[0].Send)
			require.Len(t, got, 2)
			require.ErrorIs(t, got[0].Err(), cq.ErrFatal)
			require.ErrorIs(t, got[1].Err(), cq.ErrFlushed)
			for _, a := range append(ends, early) {
				require.Equal(t, qp.Err, a.State())
				require.ErrorIs(t, ptr(one(t, f, a, a.Recv)).Err(), cq.ErrFlushed)
			}
			require.Equal(t, 3, watched)
			requireFatal(t, f.NICs[0], err)

			_, err := f.NICs[0].CreateQP(qp.Config{})
			require.ErrorIs(t, err, nic.ErrDevice)
			require.NoError(t, early.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
			init := &qp.Attr{State: qp.Init, Port: 1}
			require.ErrorIs(t, early.Modify(init, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess), nic.ErrDevice)
			require.Equal(t, qp.Reset, early.State())
		})
	}
}

// The receive goroutine finds it out too, and so does an application that looks
// for packets itself.
func TestDeviceFatalStarted(t *testing.T) {
	for name, looks := range map[string]bool{"goroutine": false, "application": true} {
		t.Run(name, func(t *testing.T) {
			d := &deaf{Conn: openUDP(t, "127.88.31.1")}
			f := nictest.Over(t, d, openUDP(t, "127.88.31.2"))
			f.NICs[1].Start()
			if !looks {
				f.NICs[0].Start()
			}
			a, b := f.Pair(0, 1, nictest.PairConfig{RNRRetry: 7})
			d.fail(errGone)
			if looks {
				a.DriveSend()
			}
			a.Post(qp.SendWR{ID: 1, Op: wr.OpSend})  // waits for a receive
			b.Post(qp.SendWR{ID: 2, Op: wr.OpWrite}) // which wakes the goroutine
			require.ErrorIs(t, ptr(waitFor(t, a.Send, 1)[0]).Err(), cq.ErrFatal)
			require.False(t, a.NIC.Progress())
			requireFatal(t, a.NIC, errGone)
		})
	}
}

// Want of memory passes: packets wait in the socket meanwhile.
func TestReceivingPauses(t *testing.T) {
	for _, errno := range []error{syscall.ENOMEM, syscall.ENOBUFS} {
		t.Run(errno.Error(), func(t *testing.T) {
			d := &deaf{Conn: openUDP(t, "127.88.32.1")}
			f := nictest.Over(t, d, openUDP(t, "127.88.32.2"))
			for _, n := range f.NICs {
				n.Start()
			}
			a, b := f.Pair(0, 1, nictest.PairConfig{})
			local, remote := a.Region(64), b.Region(64)
			d.times.Store(4)
			d.fail(errno)
			a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 64), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
			require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
			require.Nil(t, d.err.Load(), "it failed as often as it should")
			require.Empty(t, a.NIC.Events())
		})
	}
}
