package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/engine"
)

// The codes are HIXL's, by number and name.
func TestStatusCodes(t *testing.T) {
	for s, want := range map[engine.Status]string{
		0: "SUCCESS", 103900: "PARAM_INVALID", 103901: "TIMEOUT", 103902: "NOT_CONNECTED", 103903: "ALREADY_CONNECTED", 103904: "NOTIFY_FAILED",
		103905: "UNSUPPORTED", 203900: "RESOURCE_EXHAUSTED", 503900: "FAILED", 5: "Status(5)",
	} {
		require.Equal(t, want, s.String())
	}
	require.Equal(t, engine.StatusSuccess, engine.StatusOf(nil))
	require.Equal(t, engine.StatusFailed, engine.StatusOf(errors.New("else")))
	err := error(&engine.StatusError{Status: engine.StatusTimeout, Op: "Connect", Remote: "r", Err: fmt.Errorf("why: %w", hixl.ErrPeerDown)})
	require.EqualError(t, err, "engine: Connect r: TIMEOUT (103901): why: hixl: peer is not connected")
	require.ErrorIs(t, fmt.Errorf("outer: %w", err), engine.ErrTimeout)
	require.NotErrorIs(t, err, engine.ErrFailed)
	require.ErrorIs(t, err, hixl.ErrPeerDown)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

// The other numbers are HIXL's too.
func TestNumbers(t *testing.T) {
	require.Equal(t, []any{engine.MemType(0), engine.MemType(1)}, []any{engine.MemDevice, engine.MemHost})
	require.Equal(t, []any{engine.TransferOp(0), engine.TransferOp(1)}, []any{engine.Read, engine.Write})
	require.Equal(t, "MEM_DEVICE MEM_HOST MemType(2) READ WRITE TransferOp(2)",
		fmt.Sprint(engine.MemDevice, " ", engine.MemHost, " ", engine.MemType(2), " ", engine.Read, " ", engine.Write, " ", engine.TransferOp(2)))
	for i, name := range []string{"WAITING", "COMPLETED", "TIMEOUT", "FAILED", "TransferStatus(4)"} {
		require.Equal(t, name, engine.TransferStatus(i).String())
	}
	for i, name := range []string{
		"NOT_CONNECT", "CONNECT_PENDING", "CONNECTING", "CONNECTED", "CONNECT_FAILED", "DISCONNECT_PENDING", "DISCONNECTING", "AsyncConnectStatus(7)",
	} {
		require.Equal(t, name, engine.AsyncConnectStatus(i).String())
	}
	for _, f := range []engine.FeatureType{engine.FeatureAutoConnect, engine.FeatureClientServerComm} {
		v, err := engine.GetCapability(f)
		require.NoError(t, err)
		require.EqualValues(t, 1, v)
	}
}
