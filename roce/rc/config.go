package rc

import (
	"net/netip"
	"time"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Limits and defaults of a connection.
const (
	// DefaultWindowBytes is the payload and header bytes a requester keeps
	// unacknowledged: enough that neither side waits for the other, and a
	// fraction of what our receive buffers hold. It is 2 MiB of payload at the
	// largest path MTU, so that long READs are asked for in parts of 512 KiB, of
	// which four are on their way. A window that is a little less, since the
	// receive buffer holds no more, leaves the parts as they are, and three on their way.
	DefaultWindowBytes = 512 * (4096 + wr.PacketCost)
	// DefaultWindowPSNs bounds the unacknowledged packets of small messages and of a
	// small path MTU; with one of 1024 bytes it is a little more than DefaultWindowBytes.
	DefaultWindowPSNs = 2048
	// MaxWindowPSNs keeps new packets and duplicates apart: a quarter of the
	// 24-bit PSN space, half of what §3.2 allows.
	MaxWindowPSNs = 1 << 22
	// MinAckEvery and MaxAckEvery bound the default number of packets inside a
	// long message after which one asks for an acknowledgement (§3.4): an eighth
	// of the window.
	MinAckEvery = 16
	MaxAckEvery = 128
	// MaxMessage and MaxInline are those of package wr.
	MaxMessage = wr.MaxMessage
	MaxInline  = wr.MaxInline
	// MaxPending bounds the packets of one peer whose bytes have been accepted
	// but are not in their region yet.
	MaxPending = 4096
)

// Config describes a connection. It is read by [New] and not kept.
type Config struct {
	// LocalQPN and RemoteQPN name the two ends. Peer appears in completions.
	LocalQPN, RemoteQPN roce.QPN
	Peer                netip.Addr
	// PD resolves the remote keys that requests name.
	PD *mr.PD
	// MTU is the path MTU in payload bytes: 256, 512, 1024, 2048 or 4096.
	MTU int
	// PKey goes into every packet; 0 means 0xFFFF.
	PKey uint16

	// The responder: the PSN it expects first, what a peer may do, how many
	// READs and atomics it can serve at once (0: none), the RNR timer code it
	// answers with, and where receive work requests come from.
	ExpectPSN    roce.PSN
	Access       mr.Access
	MaxDestRead  int
	RNRTimerCode uint8
	Receives     wr.ReceiveSource
	// MaxRecvSGE is the largest number of spans of a receive.
	MaxRecvSGE int
	// MaxPending bounds placements in progress; 0 means [MaxPending].
	MaxPending int

	// The requester: see [SendConfig]. SendQueue and MaxSendSGE size the rings,
	// which are allocated at the first post.
	SendQueue  int
	MaxSendSGE int
	Send       SendConfig
}

// SendConfig holds what a requester learns when it may start to send.
type SendConfig struct {
	// FirstPSN is the PSN of the first request packet.
	FirstPSN roce.PSN
	// MaxRead is the number of READs and atomics in flight; 0 allows none.
	MaxRead int
	// Timeout is the ACK timeout exponent, T = 4.096 µs · 2^Timeout, 0..31;
	// 0 means that it never fires (§3.12).
	Timeout uint8
	// RetryCount is the number of timeouts without progress that are survived,
	// 0..7; 7 is an ordinary 7. RNRRetry likewise for RNR NAKs, 7 is unlimited.
	RetryCount, RNRRetry uint8
	// FixedTimeout switches off the shorter timeout that is derived from the
	// measured round trip (§7.2.5).
	FixedTimeout bool
	// WindowBytes and WindowPSNs bound what is unacknowledged; 0 takes the
	// defaults.
	WindowBytes int
	WindowPSNs  int
	// AckEvery is the largest number of packets sent without asking for an
	// acknowledgement; 0 is an eighth of the window.
	AckEvery int
}

// AckTimeout returns 4.096 µs · 2^code, and 0 (never) for code 0 (§3.12).
func AckTimeout(code uint8) time.Duration {
	if code == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << (code & 31)
}

func (c *Config) fill() {
	if c.PKey == 0 {
		c.PKey = 0xFFFF
	}
	if c.MaxPending <= 0 {
		c.MaxPending = MaxPending
	}
	c.MaxRecvSGE = max(c.MaxRecvSGE, 1)
	c.MaxSendSGE = max(c.MaxSendSGE, 1)
	c.Send.fill(c.MTU)
}

func (s *SendConfig) fill(mtu int) {
	if s.WindowBytes <= 0 {
		s.WindowBytes = DefaultWindowBytes
	}
	if s.WindowPSNs <= 0 {
		s.WindowPSNs = DefaultWindowPSNs
	}
	s.WindowPSNs = min(s.WindowPSNs, MaxWindowPSNs)
	if s.AckEvery <= 0 {
		packets := min(s.WindowPSNs, s.WindowBytes/(max(mtu, 1)+wr.PacketCost))
		s.AckEvery = min(max(packets/8, MinAckEvery), MaxAckEvery)
	}
}
