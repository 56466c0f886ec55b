package hostinfo

// What it costs to be without a part of the fast path.
const (
	costGSO = "each packet takes its own way through the stack: a quarter of the bandwidth at path MTU 4096, a tenth at 1024"
	costGRO = "each packet is received on its own: half of the bandwidth at path MTU 4096, a quarter at 1024"

	costMMsg = "one system call for each packet or train: up to a third less when packets are small"

	costXDP = "nothing for transfers between hixl peers, for which UDP segmentation is faster; but only a socket that sees the " +
		"IP header can check all 32 bits of the ICRC on IPv4 (UDP sockets: 25 bits between hixl peers, 16 for others)"
)
