// Package dsync is synchronisation between processes by one-sided operations alone:
// the words that they agree on lie in a region of one of them, its home, which
// executes nothing for it. A [Counter] counts, a [Lock] has one holder at a time
// and outlives it.
//
// # Homes
//
// Init functions lay an object out in a region at its home, once, before anybody
// opens it; Open functions make a handle from a remote region and an offset. A
// region may hold many objects, each of the size that a constant says. It needs
// [hixl.RemoteAtomic]. The home uses its objects as everybody does, as a peer of
// its own: what one CPU does by itself need not exclude what others do by their
// NICs, on device memory for one.
//
// An object lives as long as the incarnation of its home: after a restart, handles
// fail with [hixl.ErrStale], and are opened anew.
//
// # What is assumed
//
//   - Operations on one word take effect one after another, each at once, between the
//     call that begins them and its end. One whose result is lost, since a connection
//     broke, has taken effect, or has not, or will when nobody expects it.
//   - Processes stop for any time, or for good, between any two operations.
//   - Clocks are not compared: each reads its own, and only to measure. All run equally
//     fast, but for a tenth.
//
// # Lock
//
// The lock is one word: a version, and whether it is held. Each change is a
// compare-and-swap that increments the version: to take it, to renew the lease, to
// give it back. So the word never has the same value twice, and a compare-and-swap
// that arrives late, or again, changes nothing.
//
//   - Acquire: look at the word. If it is free, or held and unchanged since an earlier
//     look that ended at least a lease ago, swap it for the next held one. The new
//     version is the fencing token. Whoever does not learn whether its swap took effect
//     has not got the lock.
//   - Hold: until the lease, less the margin of a tenth, has gone by since the operation
//     began by which the word was last changed. Renew: swap for the next held one. A
//     renewal without result is tried again; if the word is then the next one before the
//     lease is over, it was ours.
//   - Release: swap for the next free one.
//
// Why nobody else holds it meanwhile: let the holder have made the word w by an
// operation that began at t. Nobody can have seen w before t, so a contender's swap of
// w begins a lease after t or later, by its clock, and by the holder's not before the
// lease less the margin; the holder has stopped by then. A contender who finds the
// word changed counts anew. For the same reason a word that follows w within this time
// can be only the holder's own renewal.
//
// Why it is never stuck: a holder that is gone does not change the word, so whoever
// watches it can take it a lease later.
//
// Why tokens increase: each acquisition increments the version, which nothing lowers.
// They are for what time cannot give: a holder that is stopped, between the moment it
// looked at its clock and its write, wakes up and writes. What the lock protects must
// therefore refuse a token that is lower than one that it has seen. The lock is not
// fair: who looks at the right time has it.
//
// # Counter
//
// A word to which fetch-and-add adds. Each Add is executed once; when its connection
// breaks and nobody can say whether it was, the error says so ([ErrUncertain]) and
// nothing is repeated.
//
// The protocols are machines in internal/syncproto, whose tests walk through all
// interleavings of a few users' operations, with crashes at each step, lost results
// and operations that take effect late; and do the same with variants broken on
// purpose, which must be found.
package dsync
