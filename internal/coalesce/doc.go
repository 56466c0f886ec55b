// Package coalesce gathers small writes until they are worth a work request, as a
// value: writes and time come in, runs of bytes come out. It does no I/O, holds no
// lock and starts nothing.
package coalesce
