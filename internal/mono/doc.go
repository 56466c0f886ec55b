// Package mono is the time of the protocol: a point on a monotonic clock that
// the caller reads and hands in. It holds no clock of its own, so that an
// engine built on it can only learn the time as an argument and a seeded run
// replays exactly.
//
// Every package may use it; only internal/nic and the test drivers make values
// from a real or simulated clock.
package mono
