package nic_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/rc"
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
	a.Post(qp.SendWR{Op: rc.OpWrite, Flags: rc.Signaled, SGE: sges(local, 1<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
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

// What the transport cannot send is loss, and comes again (R18, R19).
func TestSendErrorsAreLoss(t *testing.T) {
	n := 0
	f := balkyFabric(t, func(*transport.Tx) error {
		if n++; n%3 == 0 {
			return &transport.TxError{Reason: "no buffer", Err: errors.New("ENOBUFS")}
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
