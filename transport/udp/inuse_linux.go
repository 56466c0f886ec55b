package udp

import (
	"net/netip"
	"os"
)

// inUseHint guesses who owns the port. rdma_rxe takes 4791 on all addresses of a
// namespace as soon as it has one link (§1.5).
func inUseHint(a netip.Addr) string {
	if _, err := os.Stat("/sys/module/rdma_rxe"); err == nil {
		return "rdma_rxe is loaded and owns the port while it has a link (remove it with: rdma link delete NAME), " +
			"or another hixl NIC is open on " + a.String()
	}
	return "another hixl NIC, here or in another process, is most likely open on " + a.String() +
		" (find it with: ss -lunp sport = 4791); close it or use another address, such as the next one in 127.0.0.0/8"
}
