// Package chaostest has the tests in which everything goes wrong at once: contexts on
// a simulated network, and real processes, that are killed, stopped, restarted, cut
// off, and whose regions come and go, while they write, read, add, notify, lock and
// cancel. It has no code of its own.
//
// Each run comes from a seed, which a failure names. What must hold whatever happens
// is checked in every run: each operation ends exactly once, with a typed error and no
// more bytes claimed than are there; no byte lands after a transfer was called
// fenced; no key of a region that is gone, or of an incarnation that is over, is
// honoured; words that are added to have what was acknowledged, and no more than what
// may have been executed; a lock has one holder, and its tokens increase; nothing is
// left behind.
package chaostest
