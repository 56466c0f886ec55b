package nic_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
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

// balky refuses what its rule says.
type balky struct {
	transport.Conn
	refuse func(*transport.Tx) error
}

func (c *balky) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		if err := c.refuse(&b[i]); err != nil {
			return i, err
		}
		if n, err := c.Conn.WriteBatch(b[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(b), nil
}

func balkyFabric(t *testing.T, refuse func(*transport.Tx) error) *nictest.Fabric {
	return nictest.New(t, nictest.Config{
		Hosts: 2, Net: sim.Config{Trains: 16, Link: sim.Link{Delay: time.Microsecond}},
		Tune: func(host int, c *nic.Config) {
			if host == 0 {
				c.Conn = &balky{c.Conn, refuse}
			}
		},
	})
}

func transfer(t *testing.T, f *nictest.Fabric) (*nictest.End, cq.Completion) {
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(1<<20), b.Region(1<<20)
	copy(local.Bytes(), random(9, 1<<20))
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 1<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	c := one(t, f, a, a.Send)
	if c.Status == cq.StatusSuccess {
		require.Equal(t, local.Bytes(), remote.Bytes())
	}
	return a, c
}

// A transport that finds out that it cannot send trains loses nothing.
func TestTrainsGoOff(t *testing.T) {
	trains := 0
	f := balkyFabric(t, func(tx *transport.Tx) error {
		if tx.IsTrain() {
			if trains++; trains > 3 {
				return transport.ErrTrainsOff
			}
		}
		return nil
	})
	a, c := transfer(t, f)
	require.NoError(t, c.Err())
	require.Equal(t, 4, trains, "one refusal is enough")
	require.Zero(t, a.Stats().Retransmitted)
}

// What the transport cannot send now is loss, and comes again (R18, R19).
func TestSendErrorsAreLoss(t *testing.T) {
	n := 0
	f := balkyFabric(t, func(*transport.Tx) error {
		if n++; n%3 == 0 {
			return errors.New("not now")
		}
		return nil
	})
	a, c := transfer(t, f)
	require.NoError(t, c.Err())
	require.NotZero(t, a.Stats().Retransmitted)
	require.NotZero(t, a.NIC.Stats().SendErrors)
}

// A packet that is too large for the path will be too large the next time too:
// the queue pair fails.
func TestPathTooSmall(t *testing.T) {
	f := balkyFabric(t, func(tx *transport.Tx) error {
		if len(tx.Packet(0)) > 1500 {
			return &transport.MTUError{Dst: tx.Dst, Bytes: len(tx.Packet(0)), MTU: 1500}
		}
		return nil
	})
	a, c := transfer(t, f)
	require.ErrorIs(t, c.Err(), cq.ErrLocalQPOperation)
	require.Equal(t, qp.Err, a.State())
}

// So does one whose peer cannot be reached from the NIC's address at all: its
// completion names the peer, and nothing is tried again.
func TestNeverSent(t *testing.T) {
	tries := 0
	f := balkyFabric(t, func(tx *transport.Tx) error {
		tries++
		return &transport.TxError{Dst: tx.Dst, Reason: "no way there"}
	})
	for i, kind := range []qp.Type{qp.RC, qp.UC} {
		a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{Type: kind}})
		local, remote := a.Region(64), b.Region(64)
		a.Post(qp.SendWR{ID: 5, Op: wr.OpWrite, SGE: sges(local, 64), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
		c := one(t, f, a, a.Send)
		require.Equal(t, uint64(5), c.WRID)
		require.ErrorIs(t, c.Err(), cq.ErrLocalQPOperation, "%v", kind)
		require.ErrorContains(t, c.Err(), b.NIC.Addr().String())
		require.Equal(t, qp.Err, a.State())
		f.Run(time.Second)
		require.Equal(t, i+1, tries)
	}
	require.EqualValues(t, tries, f.NICs[0].Stats().SendErrors)
}

// A datagram queue pair outlives a destination that cannot be reached, or whose
// path is too small; the log says so once.
func TestDatagramNeverSent(t *testing.T) {
	nowhere := netip.MustParseAddr("192.0.2.1")
	var log strings.Builder
	f := nictest.New(t, nictest.Config{
		Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}},
		Tune: func(_ int, c *nic.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Conn = &balky{c.Conn, func(tx *transport.Tx) error {
				switch {
				case tx.Dst == nowhere:
					return &transport.TxError{Dst: tx.Dst, Reason: "no way there"}
				case len(tx.Data) > 1500:
					return &transport.MTUError{Dst: tx.Dst, Bytes: len(tx.Data)}
				}
				return nil
			}}
		},
	})
	a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{Type: qp.UD}})
	local, remote := a.Region(4096), b.Region(8192)
	b.Receive(qp.RecvWR{ID: 9, SGE: sges(remote, 8192)})
	to := wr.Destination{Addr: b.NIC.Addr(), QPN: b.QPN(), QKey: nictest.QKey}
	far := to
	far.Addr = nowhere
	a.Post(
		qp.SendWR{ID: 1, Op: wr.OpSend, SGE: sges(local, 64), To: far},
		qp.SendWR{ID: 2, Op: wr.OpSend, SGE: sges(local, 4096), To: to},
		qp.SendWR{ID: 3, Op: wr.OpSend, Flags: wr.Signaled, SGE: sges(local, 64), To: to},
	)
	require.Equal(t, uint64(3), success(t, f, a, a.Send).WRID)
	require.Equal(t, uint64(9), success(t, f, b, b.Recv).WRID)
	require.Equal(t, qp.RTS, a.State())
	require.EqualValues(t, 2, a.NIC.Stats().SendErrors)
	require.Equal(t, 1, strings.Count(log.String(), "never be sent"), log.String())
}
