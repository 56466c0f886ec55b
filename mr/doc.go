// Package mr owns protection domains, memory regions and their keys: who may
// touch which bytes, locally and from remote.
//
// A [Table] belongs to one NIC and knows all regions. A [PD] groups the regions
// and queue pairs that may work together. A [Region] is a range of a
// device.Memory with two keys: the lkey names it in local work requests, the
// rkey in the peer's packets.
//
// # Who calls it
//
// Registration and deregistration may be called from any goroutine and lock.
// The data path, PD.Remote, PD.Local, Acquire and Release, may be called from
// any goroutine, takes no lock, allocates nothing and costs the same whether
// ten or a hundred thousand regions are registered: a key is a keyed permutation
// of kind, slot and generation, so finding its region is arithmetic and one
// array access. The table's lock is a leaf: no other lock is taken under it, and no
// foreign code but Config.Rand runs under it.
//
// # Keys
//
// A key is 32 bits: 1 bit of kind (lkey or rkey), 19 of slot, 12 of generation,
// sent through a permutation under a secret of the table, so that keys cannot be
// guessed from one another. Key 0 is never given out. A slot's generation moves
// on with each reuse, and freed slots wait in a queue behind 65,536 others
// before they are reused (fewer only when the table is nearly full), so that a
// stale key is refused: it could be valid again for another region only after
// some 268 million registrations. RoCE carries keys in clear, so whoever can read
// the packets knows them; the secret guards against those who cannot.
//
// # Lending
//
// Whoever moves bytes of a region holds it by Acquire meanwhile and calls
// Release when they have moved. Deregister revokes the keys at once, after which
// Acquire fails, and then waits for what is lent: when it returns nil, no byte
// of the region will be touched any more.
package mr
