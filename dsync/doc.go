// Package dsync is synchronisation between processes by one-sided operations alone:
// the words that they agree on lie in a region of one of them, its home, which
// executes nothing for it. A [Counter] counts, a [Lock] has one holder at a time
// and outlives it, a value ([ValueWriter], [ValueReader]) is read whole while it is
// replaced, at a [Barrier] all wait for each other, a ring ([RingProducer],
// [RingConsumer]) carries records from one process to another.
//
// # Homes
//
// Init functions lay an object out in a region at its home, once, before anybody
// opens it; Open functions make a handle from a remote region and an offset. A
// region may hold many objects, each of the size that a constant or function says. It
// needs [hixl.RemoteAtomic], for values and rings also [hixl.RemoteRead] and
// [hixl.RemoteWrite], for barriers [hixl.RemoteRead]. The home uses its objects as everybody does, as a peer of
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
// # Barrier
//
// A word says how many rounds have been passed, and whether the one at work is given
// up; each party has a word of its own, which says at how many rounds it has arrived.
//
//   - Wait: swap one's own word for the next round. Read all words. If the round has
//     been passed, so has one; if all have arrived, swap the barrier's word for the next
//     round; if one has waited for too long, swap it for the same round, given up. Then
//     look again at what it has become.
//
// Why nobody passes before all have arrived: the barrier's word is made the next round
// only by a party that has seen the words of all at it, and these never decrease.
//
// Why all agree: from a round that is at work, one swap succeeds, to passed or to given
// up, and what is given up never changes again. No word comes twice, so what takes
// effect late, or again, changes nothing that was decided.
//
// Why nobody waits for the dead for longer than the patience: whoever has arrived can
// decide the round alone, one way or the other.
//
// # Ring
//
// A fixed number of slots. The producer's word counts the records that were put in, the
// consumer's those whose slots were given back: the credits. Each word begins with a
// term, which increments when another takes the end over.
//
//   - Take over: swap one's end's word for the same count in the next term.
//   - Send: while the ring is full, look at the consumer's word. Write the slot that
//     is next, wait until it is there, swap one's own word for the next count. If the
//     swap fails, another has taken over. A swap without result is tried again, before
//     anything else is written.
//   - Receive: while it is empty, look at the producer's word. Read the slot that is
//     next, then look at one's own word: if it is in another term, another has taken over,
//     who may have given the slot back, and what was read is void. Now and then, swap
//     one's own word for the count of what was taken.
//
// Why no record is torn, lost or doubled: a slot is written only while the count of
// the consumer's word is one round behind, which says that it was read, and read only
// while that of the producer's is beyond, which says that it was written; both only
// grow. The same count cannot be reached by two producers, since the swap of the one
// before is from a word of another term. What its write would do no swap prevents:
// therefore a producer takes over only when the connection of the one before has ended.
// A checksum in each record says when somebody did not keep to this.
//
// Why a consumer that dies loses nothing: its word counts only what it has returned to
// its user, and the next one begins there. So a record may be received twice, by two
// consumers; its number tells.
//
// The protocols are machines in internal/syncproto, whose tests walk through all
// interleavings of a few users' operations, with crashes at each step, lost results
// and operations that take effect late; and do the same with variants broken on
// purpose, which must be found.
package dsync
