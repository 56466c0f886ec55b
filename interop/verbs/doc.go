// Package verbs is our end of the guests' verbs tool: one kind of RDMA operation
// between two ends, described by the active one. It speaks the tool's exchange
// and keeps the tool's memory layout, so that each of the two ends may be the
// tool on rdma_rxe or a NIC of ours.
//
// A [Case] is the description, [Act] the active end, [Serve] the passive one, and
// a [Result] what either end saw, which [ParseResult] also reads from the tool's
// output. For tests of the lab only.
package verbs
