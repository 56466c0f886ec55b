package cq

import "errors"

// Sentinels of the statuses, to test for with errors.Is on what Completion.Err
// returned.
var (
	ErrLocalLength      = errors.New("cq: local length error")
	ErrLocalQPOperation = errors.New("cq: local QP operation error")
	ErrLocalEECOp       = errors.New("cq: local EE context operation error")
	ErrLocalProtection  = errors.New("cq: local protection error")
	ErrFlushed          = errors.New("cq: work request flushed")
	ErrBindError        = errors.New("cq: memory window bind error")
	ErrBadResponse      = errors.New("cq: bad response")
	ErrLocalAccess      = errors.New("cq: local access error")
	ErrRemoteInvalid    = errors.New("cq: remote invalid request")
	ErrRemoteAccess     = errors.New("cq: remote access error")
	ErrRemoteOperation  = errors.New("cq: remote operation error")
	ErrRetryExceeded    = errors.New("cq: transport retry counter exceeded")
	ErrRNRRetryExceeded = errors.New("cq: RNR retry counter exceeded")
	ErrLocalRDDomain    = errors.New("cq: local RDD violation")
	ErrRemoteInvalidRD  = errors.New("cq: remote invalid RD request")
	ErrRemoteAborted    = errors.New("cq: aborted by the remote side")
	ErrInvalidEECN      = errors.New("cq: invalid EE context number")
	ErrInvalidEECState  = errors.New("cq: invalid EE context state")
	ErrFatal            = errors.New("cq: fatal error")
	ErrResponseTimeout  = errors.New("cq: response timeout")
	ErrGeneral          = errors.New("cq: general error")
)

const adviceRD = "reliable datagrams are not supported, so a peer or front end made this up; report it"

// statuses by number (§3.16); the causes are those of §3.16 and §4.14.
var statuses = [...]statusInfo{
	StatusSuccess: {"success", "SUCCESS", nil, ""},
	StatusLocalLength: {
		"local length error", "LOC_LEN_ERR", ErrLocalLength,
		"the message was longer than 2^31 bytes, than the posted receive, or than its READ response; post larger receives or send less",
	},
	StatusLocalQPOperation: {
		"local QP operation error", "LOC_QP_OP_ERR", ErrLocalQPOperation,
		"the queue pair cannot execute this request; check that its type, state and limits allow the operation",
	},
	StatusLocalEECOp: {"local EE context operation error", "LOC_EEC_OP_ERR", ErrLocalEECOp, adviceRD},
	StatusLocalProtection: {
		"local protection error", "LOC_PROT_ERR", ErrLocalProtection,
		"a local buffer's lkey, range or rights do not fit; check that the region is registered in the queue pair's protection domain, still valid, and LOCAL_WRITE where bytes land",
	},
	StatusFlushed: {
		"work request flushed error", "WR_FLUSH_ERR", ErrFlushed,
		"the queue pair entered the error state before this request was done; the first failed completion of the queue pair tells why",
	},
	StatusBindError: {
		"memory bind operation error", "MW_BIND_ERR", ErrBindError,
		"memory windows are not supported; use a region's own rkey",
	},
	StatusBadResponse: {
		"bad response error", "BAD_RESP_ERR", ErrBadResponse,
		"the peer answered with something that does not fit the request; check that both sides agree on path MTU and queue pair numbers, and capture the packets",
	},
	StatusLocalAccess: {
		"local access error", "LOC_ACCESS_ERR", ErrLocalAccess,
		"a receive's buffer could not be written for the peer's message; register it with LOCAL_WRITE and keep it registered",
	},
	StatusRemoteInvalid: {
		"remote invalid request error", "REM_INV_REQ_ERR", ErrRemoteInvalid,
		"the responder does not accept this request; check that its queue pair enables the operation, that its posted receive is long enough, that max_rd_atomic is not above its max_dest_rd_atomic, and that atomics are 8-byte aligned",
	},
	StatusRemoteAccess: {
		"remote access error", "REM_ACCESS_ERR", ErrRemoteAccess,
		"the responder refused the rkey, the range or the right; check that the address and rkey are current, that the bytes are inside the region, and that it was registered with the remote right in the queue pair's protection domain",
	},
	StatusRemoteOperation: {
		"remote operation error", "REM_OP_ERR", ErrRemoteOperation,
		"the responder could not finish the request for a reason of its own; look at the peer's completions and log",
	},
	StatusRetryExceeded: {
		"transport retry counter exceeded", "RETRY_EXC_ERR", ErrRetryExceeded,
		"the peer was silent for (retry_cnt+1) timeouts; check that it runs, that its queue pair is connected to this one, that the address is right, and that no firewall or address translation stands on UDP port 4791",
	},
	StatusRNRRetryExceeded: {
		"RNR retry counter exceeded", "RNR_RETRY_EXC_ERR", ErrRNRRetryExceeded,
		"the peer had no receive posted through rnr_retry+1 attempts; post more receives there, or set rnr_retry to 7 to wait without end",
	},
	StatusLocalRDDomain:   {"local RDD violation error", "LOC_RDD_VIOL_ERR", ErrLocalRDDomain, adviceRD},
	StatusRemoteInvalidRD: {"remote invalid RD request", "REM_INV_RD_REQ_ERR", ErrRemoteInvalidRD, adviceRD},
	StatusRemoteAborted: {
		"aborted error", "REM_ABORT_ERR", ErrRemoteAborted,
		"the responder gave the request up; look at the peer's completions and log",
	},
	StatusInvalidEECN:     {"invalid EE context number", "INV_EECN_ERR", ErrInvalidEECN, adviceRD},
	StatusInvalidEECState: {"invalid EE context state", "INV_EEC_STATE_ERR", ErrInvalidEECState, adviceRD},
	StatusFatal: {
		"fatal error", "FATAL_ERR", ErrFatal,
		"the NIC or its transport failed; close it and open it again",
	},
	StatusResponseTimeout: {
		"response timeout error", "RESP_TIMEOUT_ERR", ErrResponseTimeout,
		"no response came in time; check that the peer runs and is reachable",
	},
	StatusGeneral: {
		"general error", "GENERAL_ERR", ErrGeneral,
		"something failed that has no status of its own; look at the log",
	},
}
