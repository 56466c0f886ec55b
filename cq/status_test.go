package cq_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// The table of §3.16; texts are those of ibv_wc_status_str.
var verbsStatuses = []struct {
	status cq.Status
	number uint8
	verbs  string
	text   string
	is     error
}{
	{cq.StatusSuccess, 0, "SUCCESS", "success", nil},
	{cq.StatusLocalLength, 1, "LOC_LEN_ERR", "local length error", cq.ErrLocalLength},
	{cq.StatusLocalQPOperation, 2, "LOC_QP_OP_ERR", "local QP operation error", cq.ErrLocalQPOperation},
	{cq.StatusLocalEECOp, 3, "LOC_EEC_OP_ERR", "local EE context operation error", cq.ErrLocalEECOp},
	{cq.StatusLocalProtection, 4, "LOC_PROT_ERR", "local protection error", cq.ErrLocalProtection},
	{cq.StatusFlushed, 5, "WR_FLUSH_ERR", "work request flushed error", cq.ErrFlushed},
	{cq.StatusBindError, 6, "MW_BIND_ERR", "memory bind operation error", cq.ErrBindError},
	{cq.StatusBadResponse, 7, "BAD_RESP_ERR", "bad response error", cq.ErrBadResponse},
	{cq.StatusLocalAccess, 8, "LOC_ACCESS_ERR", "local access error", cq.ErrLocalAccess},
	{cq.StatusRemoteInvalid, 9, "REM_INV_REQ_ERR", "remote invalid request error", cq.ErrRemoteInvalid},
	{cq.StatusRemoteAccess, 10, "REM_ACCESS_ERR", "remote access error", cq.ErrRemoteAccess},
	{cq.StatusRemoteOperation, 11, "REM_OP_ERR", "remote operation error", cq.ErrRemoteOperation},
	{cq.StatusRetryExceeded, 12, "RETRY_EXC_ERR", "transport retry counter exceeded", cq.ErrRetryExceeded},
	{cq.StatusRNRRetryExceeded, 13, "RNR_RETRY_EXC_ERR", "RNR retry counter exceeded", cq.ErrRNRRetryExceeded},
	{cq.StatusLocalRDDomain, 14, "LOC_RDD_VIOL_ERR", "local RDD violation error", cq.ErrLocalRDDomain},
	{cq.StatusRemoteInvalidRD, 15, "REM_INV_RD_REQ_ERR", "remote invalid RD request", cq.ErrRemoteInvalidRD},
	{cq.StatusRemoteAborted, 16, "REM_ABORT_ERR", "aborted error", cq.ErrRemoteAborted},
	{cq.StatusInvalidEECN, 17, "INV_EECN_ERR", "invalid EE context number", cq.ErrInvalidEECN},
	{cq.StatusInvalidEECState, 18, "INV_EEC_STATE_ERR", "invalid EE context state", cq.ErrInvalidEECState},
	{cq.StatusFatal, 19, "FATAL_ERR", "fatal error", cq.ErrFatal},
	{cq.StatusResponseTimeout, 20, "RESP_TIMEOUT_ERR", "response timeout error", cq.ErrResponseTimeout},
	{cq.StatusGeneral, 21, "GENERAL_ERR", "general error", cq.ErrGeneral},
}

func TestStatuses(t *testing.T) {
	for _, c := range verbsStatuses {
		require.EqualValues(t, c.number, c.status)
		require.Equal(t, c.text, c.status.String())
		require.Equal(t, "IBV_WC_"+c.verbs, c.status.Verbs())
		require.Equal(t, c.is, c.status.Sentinel())
		err := (&cq.Completion{Status: c.status}).Err()
		if c.is == nil {
			require.NoError(t, err)
			continue
		}
		require.NotEmpty(t, c.status.Advice(), "%v", c.status)
		for _, other := range verbsStatuses[1:] {
			require.Equal(t, other.is == c.is, errors.Is(err, other.is), "%v is %v", c.status, other.is) //nolint:errorlint // identity is the question
		}
	}
	made := cq.Status(200)
	require.Equal(t, "status 200", made.String())
	require.Equal(t, "status 200", made.Verbs())
	require.ErrorIs(t, (&cq.Completion{Status: made}).Err(), cq.ErrGeneral)
}

func TestStatusErrorText(t *testing.T) {
	peer := netip.MustParseAddr("127.0.0.2")
	for name, c := range map[string]struct {
		c    cq.Completion
		want string
		not  string
	}{
		"write": {
			c: cq.Completion{
				Status: cq.StatusRemoteAccess, Opcode: cq.OpWrite, QPN: 0x12, Peer: peer,
				RemoteAddr: 0x7f0000001000, RKey: 0xbeef, Syndrome: roce.SynNakAccess,
			},
			want: "hixl: WRITE to 127.0.0.2 on qp 0x000012, remote addr 0x7f0000001000 rkey 0x0000beef: remote access error (10), " +
				"the peer said NAK remote access error: the responder refused the rkey, the range or the right; check",
		},
		"silent peer": {
			c:    cq.Completion{Status: cq.StatusRetryExceeded, Opcode: cq.OpSend, QPN: 0x345, Peer: peer, RKey: 7, Syndrome: roce.SynACK},
			want: "hixl: SEND to 127.0.0.2 on qp 0x000345: transport retry counter exceeded (12): the peer was silent for (retry_cnt+1) timeouts; check that it runs",
			not:  "rkey",
		},
		"receive": {
			c:    cq.Completion{Status: cq.StatusLocalLength, Opcode: cq.OpRecv, QPN: 1, Peer: peer},
			want: "hixl: RECV from 127.0.0.2 on qp 0x000001: local length error (1): ",
		},
		"unknown peer": {
			c:    cq.Completion{Status: cq.StatusFlushed, Opcode: cq.OpRead, QPN: 2},
			want: "hixl: READ on qp 0x000002, remote addr 0x0 rkey 0x00000000: work request flushed error (5): ",
			not:  "invalid IP",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.c.Err()
			require.ErrorContains(t, err, c.want)
			if c.not != "" {
				require.NotContains(t, err.Error(), c.not)
			}
			var typed *cq.StatusError
			require.ErrorAs(t, err, &typed)
			require.Equal(t, c.c, typed.Completion)
		})
	}
	require.ErrorContains(t, (&cq.Completion{Status: cq.StatusRetryExceeded}).Err(), "UDP port 4791")
}

// Numbers of §3.16.
func TestOpcodes(t *testing.T) {
	for op, want := range map[cq.Opcode]struct {
		number uint8
		name   string
	}{
		cq.OpSend: {0, "SEND"}, cq.OpWrite: {1, "WRITE"}, cq.OpRead: {2, "READ"}, cq.OpCompSwap: {3, "CMP_SWAP"},
		cq.OpFetchAdd: {4, "FETCH_ADD"}, cq.OpBindMW: {5, "BIND_MW"}, cq.OpLocalInv: {6, "LOCAL_INV"}, cq.OpTSO: {7, "TSO"},
		cq.OpFlush: {8, "FLUSH"}, cq.OpAtomicWrite: {9, "ATOMIC_WRITE"},
		cq.OpRecv: {128, "RECV"}, cq.OpRecvWriteImm: {129, "RECV_WRITE_IMM"},
	} {
		require.EqualValues(t, want.number, op)
		require.Equal(t, want.name, op.String())
		require.Equal(t, want.number >= 128, op.IsRecv())
	}
	require.Equal(t, "opcode 77", cq.Opcode(77).String())
	require.True(t, (cq.WithImm | cq.GRH).Has(cq.GRH))
	require.False(t, cq.WithImm.Has(cq.WithImm|cq.GRH))
}
