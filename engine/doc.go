// Package engine has the shape of HIXL, the one-sided engine for Ascend clusters, on
// contexts of package hixl: the same calls, options, status codes and rules, in Go.
// Programs that were written for HIXL find here what they know, on any host.
//
// An [Engine] is named by an IP address and port. [Engine.RegisterMem] opens memory to
// others; [Engine.Connect] makes a link to another engine; [Engine.TransferSync] and
// [Engine.TransferAsync] copy lists of pieces between local memory and the other
// engine's, both named by address; [Engine.SendNotify] tells the other side. Errors
// are *[StatusError] with HIXL's codes.
//
// # What is as in HIXL
//
// The client connects, and the link is its to use; a second Connect is
// [StatusAlreadyConnected]. Transfers use any part of a registered region. Registering
// the same memory again gives the same handle, deregistering twice is fine. The end of
// an asynchronous transfer is told once, and it has no timeout of its own. A
// link that has failed or timed out is not used again before Disconnect and Connect.
// With the option AutoConnect the first transfer connects and a failure
// disconnects. Unregistered local memory is relayed through the option BufferPool's
// buffers by synchronous transfers. 4096 notifications wait for each link.
//
// # What is better
//
//   - Memory that is registered after connecting is found; memory that is
//     deregistered is refused before anything is sent, once its owner has told.
//   - An engine can connect to itself.
//   - A notification arrives after all transfers that were begun before it, and
//     [TransferArgs] can bind one to a transfer.
//   - [Engine.CancelTransfer] and [Engine.Disconnect] tell the truth: when they return
//     nil no byte lands any more; if that is not known the error unwraps to
//     [hixl.ErrUnfenced].
//   - Pieces of one call may be of any kinds of memory, relayed or not.
//   - Calls may be made from any goroutine; nothing is bound to a thread.
//   - Errors say which engine, which piece, why, and what to do.
//
// # What is different
//
// Timeouts are deadlines of contexts; without one, it is HIXL's second. Unregistered
// remote memory is refused, where HIXL relays: nobody has opened it. What needs an
// Ascend interconnect is refused: fabric memory and protocols other than RoCE
// of the host are [StatusUnsupported]. There is no wire compatibility with HIXL: both
// ends run this package.
//
// The number of links is bounded by channel_pool.max_channel only. Regions are at
// most [MaxRegions].
package engine
