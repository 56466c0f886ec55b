// Package matrix says what is shown to work with rdma_rxe, as a table of cells,
// runs it in a lab and writes the report.
//
// A cell is one pair of programs in both roles, ours as client and ours as
// server, over IPv4 or IPv6, on a bridge that does or does not harm packets. It
// passes when both ends say so, the data is right, and every packet on the bridge
// has a right ICRC.
package matrix
