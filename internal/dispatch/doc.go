// Package dispatch is the goroutine of a context: it runs one function whenever it
// is asked to, and when the time has come that the function named. There is one
// for all peers of a context, never one for each.
package dispatch
