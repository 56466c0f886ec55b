// Package archtest holds the rules that no compiler checks: which package may
// import which, where a clock may be read, that nothing needs cgo, how long a
// file may be. It has tests only; nobody imports it.
//
// The import table in graph_test.go is the layer graph of ARCHITECTURE.md. A
// new package fails the tests until it has a line there, so that its place is
// decided and not found out later.
package archtest
