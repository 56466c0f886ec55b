// Package dsync is synchronisation between processes by one-sided operations alone:
// the words that they agree on lie in a region of one of them, its home, which
// executes nothing for it. A [Counter] counts, a [Lock] has one holder at a time
// and outlives it, a value ([ValueWriter], [ValueReader]) is read whole while it is
// replaced.
//
// # Homes
//
// Init functions lay an object out in a region at its home, once, before anybody
// opens it; Open functions make a handle from a remote region and an offset. A
// region may hold many objects, each of the size that a constant or function says. It
// needs [hixl.RemoteAtomic], for values also [hixl.RemoteRead] and
// [hixl.RemoteWrite]. The home uses its objects as everybody does, as a peer of
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
//     broke, has taken effect, or has not, or will when nobody expects it. Only the
//     bytes of a write do not: a new connection to a peer begins when nothing of those
//     before it can land any more.
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
// # Value
//
// A word says which slot is the current one, and a version, which each change
// increments. Each writer has two slots of its own: a token, a length, the data.
//
//   - Load: take the word, read the slot, take the word again. If it is the same, that
//     was the value; else begin again.
//   - Store: take the word; of one's own two slots, the one that is not current is
//     free. Look at the token of the current slot: if it is greater than one's own, and
//     the word is then still the same, one is fenced out. Write the free slot, wait until
//     it is there, swap the word for one that names it. If another was faster, look at
//     its token and swap again. A swap without result is tried again; if it is given up,
//     the next Store moves the version on first, so that it can have no effect any more.
//
// Why nothing is torn: a slot is written only by its owner, and only when it is not
// current and no swap can make it so before the next one of its owner. Versions only
// grow, so a word that is the same twice was the same in between, and its slot was
// current, so that nobody wrote to it. A writer that dies has changed nothing but a
// slot that nobody reads.
//
// Why a lower token never replaces a greater one: the swap succeeds only from the
// word whose slot's token was looked at, and while that word stands, its slot does not
// change.
//
// Readers never wait for a writer that has stopped; each time they begin again, a
// writer has succeeded.
//
// The protocols are machines in internal/syncproto, whose tests walk through all
// interleavings of a few users' operations, with crashes at each step, lost results
// and operations that take effect late; and do the same with variants broken on
// purpose, which must be found.
package dsync
