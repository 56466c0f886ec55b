package roce

// PSN is a packet sequence number: 24 bits, counted modulo 2^24. Values with
// higher bits set are never produced here.
type PSN uint32

// QPN is a queue pair number, 24 bits. 0 is never a RoCE destination, 1 is the
// general service interface, [QPNMulticast] addresses UD multicast.
type QPN uint32

const (
	// PSNMask holds the bits of a PSN.
	PSNMask PSN = 1<<24 - 1
	// QPNMask holds the bits of a QPN.
	QPNMask QPN = 1<<24 - 1
	// QPNGSI is the queue pair of connection management, the same on every port.
	QPNGSI QPN = 1
	// QPNMulticast is the destination of UD multicast packets (§1.6).
	QPNMulticast QPN = 0xFFFFFF
)

// Add returns p moved by n packets, which may be negative, modulo 2^24.
func (p PSN) Add(n int) PSN { return PSN(uint32(p)+uint32(n)) & PSNMask }

// Sub returns the signed distance from q to p in packets, in [-2^23, 2^23):
// positive when p is later (§0).
func (p PSN) Sub(q PSN) int32 { return int32(uint32(p)-uint32(q)) << 8 >> 8 }

// Before reports whether p is earlier than q, by less than half the number space.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }
