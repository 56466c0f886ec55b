// Package transporttest is what every carrier must do, as tests. A carrier's own
// tests call [Run] with a way to open two of them that reach each other.
package transporttest
