// Package toolstest serves the tests of the tools' counterparts: it takes the
// recorded exchanges of the originals out of captures and plays either side of
// them, and runs both ends of a tool on two addresses of this host. Tests call it,
// from the test's goroutine where it takes a testing.TB.
package toolstest
