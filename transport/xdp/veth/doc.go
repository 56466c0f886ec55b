// Package veth makes two network namespaces joined by a pair of virtual Ethernet
// links, for programs that want to see a transport work between two hosts and have
// one. It serves hixl-bench and tests; the namespaces have no name and end with the
// Pair, or with the process, however that ends. It needs CAP_SYS_ADMIN and
// CAP_NET_ADMIN, and Linux.
package veth
