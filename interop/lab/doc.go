// Package lab boots Linux guests with rdma_rxe, the kernel's software RDMA NIC,
// on a bridge that this process is on too, so that a stack in user space has a
// real peer.
//
// [Prepare] installs Debian's packages and builds kernels and the guests' file
// system, once. [Reexec] runs the program again as the first process of network,
// process and mount namespaces of its own: all that the lab makes is in there and
// goes with it, however it ends. There, [Boot] starts guests, which run commands
// ([Guest.Run]) and whose packets cross a [bridge.Switch] that can lose them.
//
// Linux on x86-64 and root only, and for tests only.
package lab
