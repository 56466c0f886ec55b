// Package faults makes a carrier lose, duplicate, reorder and corrupt what it
// sends, for trying a stack over real sockets as `hixl-bench --loss` does. It
// owns the faults, on the sending side only; both ends wrapped give faults in
// both directions. Tests that need exact replay use transport/sim instead.
package faults
